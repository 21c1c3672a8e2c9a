import { createServer, type Server } from "node:http";

import { isLockError, type Lease, type Locks } from "holdfast";
import type { Redis } from "ioredis";
import type { Pool, PoolClient } from "pg";

/** How long a request may be repeated, ms. */
const keepMs = 86_400_000;

/** The reply to a request, as text. */
type Reply = string;

/**
 * Runs a request once for each idempotency key, and returns the stored reply to its repeats. A crash or a lost lease during the work lets
 * a repeat run it again.
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
  try {
    await locks.once(`request:${key}`, { keepMs }, async (lease) => {
      await client.set(`reply:${key}`, await work(lease), "PX", keepMs, "NX"); // the first reply stays
    });
  } catch (error) {
    // If the work ended, the reply is stored.
    if (!isLockError(error, "lease-lost") || !error.workEnded) {
      throw error;
    }
  }
  return (await client.get(`reply:${key}`)) ?? undefined;
}

/** The table of {@link idempotentRow}. */
export const replyTable = "CREATE TABLE reply (key text PRIMARY KEY, body text NOT NULL)";

/** As {@link idempotent}, for effects in a database: the row of the key and the effect commit in one transaction. */
export async function idempotentRow(
  pool: Pool,
  key: string,
  work: (client: PoolClient) => Promise<Reply>,
): Promise<Reply> {
  const client = await pool.connect();
  const ignore = (): undefined => undefined; // a connection that ends: the next query rejects
  client.on("error", ignore);
  try {
    await client.query("BEGIN");
    // Waits for the transaction of another run of this key.
    const insert = "INSERT INTO reply (key, body) VALUES ($1, '') ON CONFLICT DO NOTHING";
    const isFirst = (await client.query(insert, [key])).rowCount === 1;
    if (isFirst) {
      await client.query("UPDATE reply SET body = $2 WHERE key = $1", [key, await work(client)]);
    }
    const { rows } = await client.query<{ body: Reply }>("SELECT body FROM reply WHERE key = $1", [key]);
    await client.query("COMMIT");
    return rows[0]!.body;
  } catch (error) {
    await client.query("ROLLBACK").catch(ignore);
    throw error;
  } finally {
    client.off("error", ignore);
    client.release();
  }
}

/**
 * A server whose clients repeat `POST /charges` with the same `Idempotency-Key`.
 * @param charge passes the key to the payment provider, because the work may run again
 */
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
      () => response.writeHead(503).end("The charge may have failed: repeat it with the same key"),
    );
  });
}
