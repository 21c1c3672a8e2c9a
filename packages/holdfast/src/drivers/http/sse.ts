import { utf8Decoder } from "../../runtime/text.ts";

/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

const maxBuffered = 16 * 1024 * 1024;

/**
 * The events of a stream, until the stream ends. Rejects if the stream breaks.
 * @param received called with each chunk, so that comments of the service also prove the connection alive
 */
export async function* eventsOf(
  body: AsyncIterable<Uint8Array>,
  received: () => void,
): AsyncGenerator<ServerEvent, void, undefined> {
  let rest = "";
  const decoder = utf8Decoder();
  for await (const chunk of body) {
    received();
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    if (rest.length > maxBuffered) {
      throw new Error(`an event is longer than ${maxBuffered} characters`);
    }
    for (const block of blocks) {
      const event = parseBlock(block);
      if (event) {
        yield event;
      }
    }
  }
}

/** The service ends its lines with \n. @returns undefined for a comment */
function parseBlock(block: string): ServerEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^([a-z]+):? ?(.*)$/s.exec(line) ?? [];
    if (name === "event") {
      event = value;
    } else if (name === "data") {
      data.push(value);
    }
  }
  return data.length > 0 ? { event, data: data.join("\n") } : undefined;
}
