import * as http from "node:http";
import type { AddressInfo } from "node:net";

import { afterEach, beforeEach, expect, test } from "vitest";

import { NodeTransport } from "../../../src/drivers/http/node-transport.ts";
import type { TransportReply } from "../../../src/drivers/http/transport.ts";

let server: http.Server;
let transport: NodeTransport;
let end: (response: http.ServerResponse) => void;

beforeEach(async () => {
  server = http.createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("event: waiting\ndata: {}\n\n");
    end(response);
  });
  transport = new NodeTransport(http);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(() => {
  transport.close();
  server.closeAllConnections();
  server.close();
});

function send(signal: AbortSignal): Promise<TransportReply> {
  const { port } = server.address() as AddressInfo;
  return transport.send(
    { method: "GET", url: new URL(`http://127.0.0.1:${port}/`), headers: {}, body: undefined },
    signal,
  );
}

test("an abort while a reply that has ended is read causes no error outside of the call", async () => {
  end = (response) => response.end("event: granted\ndata: {}\n\n");
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on("uncaughtException", note);
  try {
    for (let turn = 0; turn < 20; turn += 1) {
      const cancelled = new AbortController();
      const { body } = await send(cancelled.signal);
      for await (const _ of body) {
        cancelled.abort();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    process.off("uncaughtException", note);
  }
  expect(uncaught).toEqual([]);
});

test("an abort ends the reading of a reply that goes on", async () => {
  end = () => undefined;
  const cancelled = new AbortController();
  const { body } = await send(cancelled.signal);
  const read = async (): Promise<void> => {
    for await (const _ of body) {
      cancelled.abort();
    }
  };
  await expect(read()).rejects.toThrow(/aborted/);
});

test("an abort before the reply rejects with the reason of the abort", async () => {
  server.removeAllListeners("request");
  const cancelled = new AbortController();
  const reply = send(cancelled.signal);
  server.once("request", () => cancelled.abort(new Error("the caller went away")));
  await expect(reply).rejects.toThrow("the caller went away");
  await expect(send(cancelled.signal)).rejects.toThrow("the caller went away");
});
