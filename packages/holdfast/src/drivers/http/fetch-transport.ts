import { isWorkerd } from "../../runtime/node-modules.ts";
import type { Transport, TransportReply, TransportRequest } from "./transport.ts";

/** Requests by `fetch`, in browsers and in workers. */
export class FetchTransport implements Transport {
  /**
   * A browser opens six connections to a service at once by HTTP/1.1, for all its pages together. A worker opens six for each request.
   * The other connections are for renewals and releases.
   */
  readonly maxStreams: number = 2;
  readonly #closing = new AbortController();

  async send(
    { method, url, headers, body }: TransportRequest,
    signal?: AbortSignal,
  ): Promise<TransportReply> {
    const closing = this.#closing.signal;
    const response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, closing]) : closing,
      ...(body !== undefined && { body }),
      // workerd throws an error for these two
      ...(!isWorkerd() && { cache: "no-store", credentials: "omit" }),
    });
    return {
      status: response.status,
      contentType: response.headers.get("content-type") ?? "",
      body: chunksOf(response.body),
    };
  }

  close(): void {
    this.#closing.abort();
  }
}

/** Not every browser can iterate a stream itself. */
async function* chunksOf(
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body?.getReader();
  try {
    for (let next = await reader?.read(); next?.value; next = await reader?.read()) {
      yield next.value;
    }
  } finally {
    reader?.cancel().catch(() => undefined); // a broken stream has nothing to cancel
  }
}
