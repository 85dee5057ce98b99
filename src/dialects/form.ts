/** Forms: what `a2a.input.*` and `a2a.hitl.*` have in common, which is everything but their names. */
import { type Decoded, type Dialect, decoded, malformed, NOT_MINE } from "./dialect.ts";
import { decodeFilledForm, encodeFilledForm } from "./form-answer.ts";
import { decodeForm, encodeForm } from "./form-request.ts";
import { hasKey, Id, objectOf, readShape } from "./shape.ts";

interface Names {
  readonly dialect: string;
  readonly request: string;
  readonly response: string;
  /** Where the id stands; the first is the one that is written. */
  readonly ids: readonly [string, ...string[]];
}

export function createFormDialect({ dialect, request, response, ids }: Names): Dialect {
  const header = (type: string, id: string | undefined) => objectOf({ type, [ids[0]]: id });
  return {
    name: dialect,
    encodeRequests: (asked) =>
      asked.map((one) => ({ data: { ...header(request, one.requestId), ...encodeForm(one) } })),
    decodeRequests(data) {
      if (!hasKey(data, "type") || data.type !== request) return NOT_MINE;
      const id = readId(data, ids);
      return id.outcome === "decoded" ? oneOf(decodeForm(data, id.value)) : id;
    },
    encodeAnswers: (replies) =>
      replies.flatMap((reply) => {
        const filled = encodeFilledForm(reply);
        return filled ? [{ data: { ...header(response, reply.answer.requestId), ...filled } }] : [];
      }),
    decodeAnswers(data, find) {
      if (!hasKey(data, "type") || data.type !== response) return NOT_MINE;
      const id = readId(data, ids);
      return id.outcome === "decoded" ? oneOf(decodeFilledForm(data, id.value, find(id.value))) : id;
    },
  };
}

function oneOf<T>(one: Decoded<T>): Decoded<readonly T[]> {
  return one.outcome === "decoded" ? decoded([one.value]) : one;
}

function readId(data: Record<string, unknown>, keys: readonly string[]): Decoded<string | undefined> {
  let found: string | undefined;
  for (const key of keys) {
    const read = readShape(Id.nullish(), Object.hasOwn(data, key) ? data[key] : undefined, `/${key}`);
    if (read.outcome !== "decoded") return read;
    const id = read.value ?? undefined;
    if (id !== undefined && found !== undefined && id !== found) return malformed(`/${key}`, "names another request");
    found ??= id;
  }
  return decoded(found);
}
