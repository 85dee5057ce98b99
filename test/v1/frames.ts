/** The named events of a stream, until it ends. */

export interface NamedFrame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
  readonly data: any;
}

export async function readNamedFrames(response: Response): Promise<NamedFrame[]> {
  return parseFrames(await response.text());
}

export function parseFrames(text: string): NamedFrame[] {
  return text.split("\n\n").flatMap((block) => {
    const lines = block.split("\n");
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = field("data");
    return data === undefined ? [] : [{ id: field("id"), event: field("event"), data: JSON.parse(data) }];
  });
}
