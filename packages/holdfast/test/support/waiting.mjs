// A process that waits for a key. With `break` it ends the grant of the holder after 200 ms.
//
//   node waiting.mjs <port> <key> [break]
//
// It writes `waiting`. It writes the wall clock at its grant.

import { setTimeout } from "node:timers/promises";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

const [port, key, shouldBreak] = process.argv.slice(2);
const client = new Redis(Number(port));
const locks = createLocks(redis(client));
const acquired = locks.acquire(key, { waitMs: 60_000 });
while (!(await locks.inspect(key)).waiters.length > 0) {
  // until the engine has the waiter
}
console.log("waiting");
if (shouldBreak) {
  await setTimeout(200);
  const { fencingToken } = (await locks.inspect(key)).holders[0];
  await locks.admin.breakLock(key, { fencingToken, reason: "test" });
}
const lease = await acquired;
console.log(String(Date.now()));
await lease.release();
await locks.close();
client.disconnect();
