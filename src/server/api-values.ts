export { findValueProblem } from "../runtime/values.ts";
