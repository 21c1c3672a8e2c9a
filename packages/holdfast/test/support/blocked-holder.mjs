// A process that holds a key with a watchdog thread.
//
//   node blocked-holder.mjs <port> <key> <ttlMs>
//
// It writes `held`. Then its event loop is blocked.

import { writeSync } from "node:fs";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { watchdogThread } from "holdfast/watchdog-thread";
import { Redis } from "ioredis";

const [port, key, ttlMs] = process.argv.slice(2);
const watchdog = watchdogThread(`redis://127.0.0.1:${port}`);
const locks = createLocks(redis(new Redis(Number(port))), { watchdog });
await locks.acquire(key, { ttlMs: Number(ttlMs) });
writeSync(1, "held\n");
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
