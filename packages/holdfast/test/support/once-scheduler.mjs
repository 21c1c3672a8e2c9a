// A process with a job that runs once in each period. Each line of standard input is a fire of its schedule.
//
//   node once-scheduler.mjs <port> <key>
//
// It writes `ready <wall clock>`, then `ran <fire>` or `skipped <fire>` for each fire.

import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

const [port, key] = process.argv.slice(2);
const client = new Redis(Number(port));
const locks = createLocks(redis(client));
console.log(`ready ${Date.now()}`);
for await (const fire of createInterface({ input: process.stdin })) {
  const { ran } = await locks.once(key, { keepMs: 4_000 }, () => pause(20));
  console.log(`${ran ? "ran" : "skipped"} ${fire}`);
}
await locks.close();
client.disconnect();
