// A process that contends for a read-write lock or a semaphore, for integration/single/kinds-contention.test.ts.
//
// `node shares.mjs <port> <name> <order as JSON>`
//
// With the order `{ kind: "read-write" | "semaphore", keys, tasks, rounds, record }` the process records each turn, prints "done"
// and ends. With `{ hold: "read", key, ttlMs }` it prints "held" and holds the lease. It uses the built library, as programs do.

import { setPriority } from "node:os";

import { Redis } from "ioredis";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";
import { contend } from "./contending.mjs";

setPriority(10);

const [port, name, order] = process.argv.slice(2);
const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const locks = createLocks(redis(client));
const { hold, key, ttlMs, ...contention } = JSON.parse(order);

if (hold) {
  await locks.readWrite(key).read.acquire({ ttlMs });
  console.log("held");
} else {
  await contend(locks, name, contention);
  await locks.close();
  client.disconnect();
  console.log("done");
}
