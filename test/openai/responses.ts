/** The wire of the Responses API, as OpenAI documents it: text and function calls. */
import type { SpokenReply } from "./server.ts";
import { type Spoken, split, spoken } from "./spoken.ts";

const BASE = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "loopback" };

export function responsesStream(reply: SpokenReply): string[] {
  const said = spoken(reply);
  const items = outputOf(said);
  const text = said.pieces.join("");
  const events: { type: string; [field: string]: unknown }[] = [
    { type: "response.created", response: { ...BASE, status: "in_progress", output: [] } },
  ];
  for (const [output_index, item] of items.entries()) {
    const at = { item_id: item.id, output_index };
    if (item.type === "message") {
      const part = { type: "output_text", text: "", annotations: [] };
      events.push(
        { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", content: [] } },
        { type: "response.content_part.added", ...at, content_index: 0, part },
        ...said.pieces.map((delta) => ({ type: "response.output_text.delta", ...at, content_index: 0, delta })),
        { type: "response.output_text.done", ...at, content_index: 0, text },
        { type: "response.content_part.done", ...at, content_index: 0, part: { ...part, text } },
      );
    } else {
      events.push(
        { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", arguments: "" } },
        ...split(item.arguments).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
        { type: "response.function_call_arguments.done", ...at, arguments: item.arguments },
      );
    }
    events.push({ type: "response.output_item.done", output_index, item });
  }
  const isCut = said.finish === "length" || said.finish === "content_filter";
  events.push({ type: isCut ? "response.incomplete" : "response.completed", response: responsesWhole(reply) });
  return events.map((event, sequence_number) => {
    return `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`;
  });
}

export function responsesWhole(reply: SpokenReply): object {
  const said = spoken(reply);
  const { input, output } = said.usage;
  const reasons: Partial<Record<Spoken["finish"], string>> = {
    length: "max_output_tokens",
    content_filter: "content_filter",
  };
  const reason = reasons[said.finish];
  return {
    ...BASE,
    status: reason ? "incomplete" : "completed",
    incomplete_details: reason ? { reason } : null,
    output: outputOf(said),
    usage: { input_tokens: input, output_tokens: output, total_tokens: input + output },
  };
}

function outputOf({ pieces, calls }: Spoken) {
  const content = [{ type: "output_text" as const, text: pieces.join(""), annotations: [] }];
  const message = { type: "message" as const, id: "msg_1", status: "completed", role: "assistant", content };
  const functions = calls.map(({ id, name, args }, i) => {
    return {
      type: "function_call" as const,
      id: `fc_${i + 1}`,
      status: "completed",
      call_id: id,
      name,
      arguments: args,
    };
  });
  return [...(pieces.length === 0 ? [] : [message]), ...functions];
}
