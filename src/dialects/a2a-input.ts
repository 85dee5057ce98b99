/** `a2a.input.request` and `a2a.input.response` (seed 001): what we speak unless somebody needs something else. */
import { createFormDialect } from "./form.ts";

export const a2aInput = createFormDialect({
  dialect: "a2a-input",
  request: "a2a.input.request",
  response: "a2a.input.response",
  // AG-UI bridges name the interrupt, which has the same id.
  ids: ["requestId", "interruptId"],
});
