import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { outcomeOf, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const db = 3;
const keyPrefix = "app:";
const key = "database";
const ttlMs = 30_000;
/** Holdfast has one counter for all prefixes, because two prefixes may lead to one key. */
const ownCounter = "holdfast:fence";

/** A client of database 3 with the prefix "app:", and a client of database 0 without a prefix, acquire a lock with one name. */
export const databaseAndPrefix: Scenario = {
  withinMs: 20_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const own = library.onServer(connect(server.port, { db, keyPrefix }));
    const elsewhere = library.onServer(connect(server.port));
    await warmUp(own);
    await server.client().flushall();
    const lease = await own.acquire(key, { ttlMs, waitMs: 1_000 });
    const complaints: string[] = [];
    for (let database = 0; database < 16; database += 1) {
      const keys = await keysOf(server, database);
      const isRight = (name: string): boolean =>
        database === db && (name.includes(keyPrefix) || name === ownCounter);
      complaints.push(
        ...keys.filter((name) => !isRight(name)).map((name) => `the key ${name} is in database ${database}`),
      );
    }
    const other = await withTimeout(3_000, elsewhere.acquire(key, { ttlMs, waitMs: 1_000 }));
    if (other.state !== "fulfilled") {
      complaints.push("a client of database 0 does not get its own lock with that name");
    }
    await withTimeout(3_000, lease.release());
    const again = await withTimeout(3_000, own.acquire(key, { ttlMs, waitMs: 1_000 }));
    if (again.state !== "fulfilled") {
      complaints.push(
        `not free after its release${again.state === "rejected" ? `: ${verdictText(again.error)}` : ""}`,
      );
    }
    return outcomeOf(complaints);
  },
};

async function keysOf(server: RedisServer, db: number): Promise<string[]> {
  return server.client({ db }).keys("*");
}
