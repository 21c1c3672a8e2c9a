/** One server-sent event. Comments have neither a name nor data: they prove that the connection is alive. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

const mostBuffered = 16 * 1024 * 1024;

/** The events of a stream, until it ends. */
export async function* eventsOf(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerEvent, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    if (rest.length > mostBuffered) throw new Error("An event of the service is too long");
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): ServerEvent {
  const fields = block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line));
  const valueOf = (name: string): string =>
    fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ""] : [])).join("\n");
  return { name: valueOf("event"), data: valueOf("data") };
}

/** The chunks of a body. Not all browsers can iterate over a stream. */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
