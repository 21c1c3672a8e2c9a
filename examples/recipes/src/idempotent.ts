import { createServer, type Server } from "node:http";

import type { Lease, Locks } from "holdfast";
import type { Redis } from "ioredis";

/** How long a request may be repeated, ms. */
const keepMs = 86_400_000;

/** The reply to a request, as text. */
type Reply = string;

/**
 * Runs a request once for each idempotency key, and returns the stored reply to its repeats.
 * @returns undefined while another call with the same key runs
 */
export async function idempotent(
  { locks, client }: { readonly locks: Locks; readonly client: Redis },
  key: string,
  work: (lease: Lease) => Promise<Reply>,
): Promise<Reply | undefined> {
  const stored = await client.get(`reply:${key}`);
  if (stored !== null) {
    return stored;
  }
  await locks.once(`request:${key}`, { keepMs }, async (lease) => {
    await client.set(`reply:${key}`, await work(lease), "PX", keepMs);
  });
  return (await client.get(`reply:${key}`)) ?? undefined;
}

/** A server whose clients repeat `POST /charges` with the same `Idempotency-Key`. */
export function chargeServer(
  locks: Locks,
  client: Redis,
  charge: (key: string, lease: Lease) => Promise<Reply>,
): Server {
  return createServer((request, response) => {
    const key = request.headers["idempotency-key"];
    if (typeof key !== "string" || !/^[\w-]{8,100}$/.test(key)) {
      response.writeHead(400).end("Expected an Idempotency-Key of 8 to 100 letters, digits, _ and -");
      return;
    }
    idempotent({ locks, client }, key, (lease) => charge(key, lease)).then(
      (reply) =>
        reply === undefined
          ? response.writeHead(409, { "retry-after": "1" }).end("The request runs already")
          : response.writeHead(201, { "content-type": "application/json" }).end(reply),
      () => response.writeHead(503).end("The charge failed, and may be repeated"),
    );
  });
}
