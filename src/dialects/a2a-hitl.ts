/** `a2a.hitl.form` and `a2a.hitl.formResponse` (seed 000): the same forms under their first names. */
import { createFormDialect } from "./form.ts";

export const a2aHitl = createFormDialect({
  dialect: "a2a-hitl",
  request: "a2a.hitl.form",
  response: "a2a.hitl.formResponse",
  ids: ["formId"],
});
