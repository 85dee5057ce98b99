/** `server.auth.self_approval: deny`: whoever asked for it may not allow it. */
import type { Answer } from "../runtime/answers.ts";
import type { Principal } from "../task/request.ts";
import type { Task } from "../task/task.ts";

/** Running it again after a crash is an approval too. */
export function isSelfApproval(
  { principal }: Task,
  { choice, values }: Pick<Answer, "choice" | "values">,
  { issuer, name }: Principal,
): boolean {
  const approves = choice === "approve" || (choice === "answer" && values?.outcome === "retry");
  return approves && principal.issuer === issuer && principal.name === name;
}
