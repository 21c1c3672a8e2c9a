// A process that contends for a read-write lock or a semaphore. See faults/kinds-contention.test.ts.
//
//   node shares.mjs <port> <name> <order as JSON>
//
// Orders: { contend: "read-write" | "semaphore", key, tasks, rounds, record } records each turn, prints "done" and ends;
// { hold: "read", key, ttlMs } prints "held" and stays. It uses the built library, as users have it.

import { openSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

import { Redis } from "ioredis";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";

setPriority(10);

const [port, name, order] = process.argv.slice(2);
const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const locks = createLocks(redis(client));
const { contend, hold, key, tasks, rounds, record, ttlMs } = JSON.parse(order);

/** One in ten writes; of the permits of a semaphore every third wants two. */
function wishOf(task, round) {
  if (contend === "semaphore") {
    const permits = (task + round) % 3 === 0 ? 2 : 1;
    const semaphore = locks.semaphore(key, { limit: 4 });
    return { weight: permits, run: (work) => semaphore.withLock({ permits, waitMs: 60_000 }, work) };
  }
  const { read, write } = locks.readWrite(key);
  const writes = (task + round) % 10 === 0;
  const lock = writes ? write : read;
  return { weight: writes ? 1000 : 1, run: (work) => lock.withLock({ waitMs: 60_000 }, work) };
}

async function turns(task, file) {
  for (let round = 0; round < rounds; round += 1) {
    const { weight, run } = wishOf(task, round);
    await run(async (lease) => {
      const line = `${name}.${task} ${weight} ${lease.fencingToken}\n`;
      writeSync(file, `begin ${line}`);
      await pause(1);
      writeSync(file, `end ${line}`);
    });
  }
}

if (hold) {
  await locks.readWrite(key).read.acquire({ ttlMs });
  console.log("held");
} else {
  const file = openSync(record, "a");
  await Promise.all(Array.from({ length: tasks }, (_, task) => turns(task, file)));
  await locks.close();
  client.disconnect();
  console.log("done");
}
