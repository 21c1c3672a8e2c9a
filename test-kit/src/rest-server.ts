import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

import { Redis } from "ioredis";

/** A server of Upstash's REST protocol before a real Redis. */
export interface RestServer {
  readonly url: string;
  readonly token: string;
  /** How many commands were sent since the start. */
  readonly commands: () => number;
  stop(): Promise<void>;
}

type Result = { readonly result: unknown } | { readonly error: string };

const token = "rest-token";
/** Requests of one client may overtake each other, as by REST. */
const connections = 3;

/**
 * Translates Upstash's documented REST protocol to a real Redis. `POST /` has one command as a JSON array, `/pipeline` and `/multi-exec`
 * have several. A bearer token is required. With the header `Upstash-Encoding: base64` replies are in base64. Upstash's own server is not
 * involved.
 */
export async function startRestServer(redisPort: number): Promise<RestServer> {
  const pool = Array.from({ length: connections }, () => new Redis(redisPort, "127.0.0.1"));
  let count = 0;
  const execute = async ([name = "", ...args]: string[]): Promise<Result> => {
    const redis = pool[count % connections] as Redis;
    count += 1;
    return redis.call(name, ...args).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: (error as Error).message }),
    );
  };
  const answer = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
    const encode = request.headers["upstash-encoding"] === "base64" ? encoded : (result: unknown) => result;
    if (request.headers.authorization !== `Bearer ${token}`) {
      return [401, { error: "WRONGPASS invalid or missing auth token" }];
    }
    const body = JSON.parse(await textOf(request)) as unknown[];
    if (request.url === "/pipeline" || request.url === "/multi-exec") {
      return [
        200,
        (await inSequence(body as unknown[][], (command) => execute(command.map(String)))).map(encodeResult),
      ];
    }
    const result = await execute(body.map(String));
    return ["error" in result ? 400 : 200, encodeResult(result)];

    function encodeResult(result: Result): Result {
      return "error" in result ? result : { result: encode(result.result) };
    }
  };
  const server = createServer((request, response) => {
    void answer(request).then(([status, body]) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    commands: () => count,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      for (const redis of pool) {
        redis.disconnect();
      }
    },
  };
}

async function inSequence<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) {
    results.push(await work(item));
  }
  return results;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Every text in base64, except `OK`. */
function encoded(result: unknown): unknown {
  if (Array.isArray(result)) {
    return result.map(encoded);
  }
  return typeof result === "string" && result !== "OK" ? Buffer.from(result).toString("base64") : result;
}
