/** Reads server-sent events from a body, frame by frame. Runs in browsers. */

export interface Frame {
  readonly event: string;
  readonly data: string;
}

/** A frame that is longer than this is not ours. */
const FRAME_CHARS_MAX = 64 * 1024 * 1024;

export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Frame, void, undefined> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > FRAME_CHARS_MAX) throw new Error("a frame without end");
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const frame = parseFrame(block);
        if (frame) yield frame;
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    // Whoever stops reading lets the server go too.
    await reader.cancel().catch(() => undefined);
  }
}

/** Undefined for a comment: the heartbeat. */
function parseFrame(block: string): Frame | undefined {
  const fields = block.split("\n").map((line) => /^(\w+): ?(.*)$/s.exec(line));
  const valuesOf = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ""] : []));
  const data = valuesOf("data");
  return data.length === 0 ? undefined : { event: valuesOf("event")[0] ?? "message", data: data.join("\n") };
}
