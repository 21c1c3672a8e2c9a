// A process that counts a latch down and waits for the latch. See integration/single/latch.test.ts.
//
//   node latches.mjs <port> <name> <order as JSON>
//
// Order: { key, count, attempts, ttlMs }. Eight tasks count every attempt from "attempt 0" on, some attempts twice. Then it prints
// "counted <the smallest remaining count>", and after the opening "open <the number of ended waits>". It uses the built library.

import { setPriority } from "node:os";

import { Redis } from "ioredis";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";

setPriority(10);

const [port, , order] = process.argv.slice(2);
const { key, count, attempts, ttlMs } = JSON.parse(order);
const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const locks = createLocks(redis(client));
const tasks = 8;

let least = Infinity;

async function countAll(latch, task) {
  for (let turn = 0; turn < attempts; turn += 1) {
    const attempt = (turn * 7 + task * 13) % attempts;
    if (attempt % tasks === task || attempt % 5 === 0) {
      least = Math.min(least, await latch.countDown({ attemptId: `attempt ${attempt}` }));
    }
  }
}

const latches = Array.from({ length: tasks }, () => locks.latch(key, { count, ttlMs }));
const waits = Promise.all(latches.map((latch) => latch.wait({ waitMs: 60_000 })));
await Promise.all(latches.map(countAll));
console.log(`counted ${least}`);
const opened = await waits;
await locks.close();
client.disconnect();
console.log(`open ${opened.length}`);
