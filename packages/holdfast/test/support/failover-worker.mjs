// A process that contends for locks on a primary found by sentinels, and records every hold. See failover-workers.ts for its use.
//
// `node failover-worker.mjs <client library> <name of the primary> <addresses of the sentinels as JSON> <record>`
// It uses the built library and ends with its parent.

import { openSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";

setPriority(10);

const [library, name, addresses, record] = process.argv.slice(2);
const sentinels = JSON.parse(addresses);
const file = openSync(record, "a");
const { client, close } = await openClient();
const locks = createLocks(redis(client, { commandTimeoutMs: 500 }), {
  defaults: { ttlMs: 3_000, waitMs: 90_000 },
});
let isOver = false;
let counted = [];

process.on("disconnect", () => process.exit());
process.on("unhandledRejection", (error) => say("failed", { message: `unhandled: ${error?.stack}` }));

const orders = {
  async contend({ keys, tasks }) {
    counted = Array.from({ length: tasks }, () => 0);
    const task = async (_, number) => {
      for (let turn = 0; !isOver; turn += 1) {
        await hold(keys[(number + turn) % keys.length], turn % 10 === 0 ? 150 : 3);
        counted[number] += 1;
      }
    };
    await Promise.all(Array.from({ length: tasks }, task));
    say("done");
  },

  /** Sends "counted" after every task has had `wanted` further turns. */
  async count({ wanted }) {
    counted.fill(0);
    while (Math.min(...counted) < wanted) {
      await pause(10);
    }
    say("counted");
  },

  async stop() {
    isOver = true;
  },

  async close() {
    await locks.close();
    await close();
    process.disconnect();
  },
};

/** Holds the key for `ms`, or until its loss. The record has the end of the hold by the worker's own knowledge. */
async function hold(key, ms) {
  const lease = await locks.acquire(key);
  const begun = now();
  const lost = new Promise((resolve) => lease.signal.addEventListener("abort", () => resolve("lost")));
  const end = (await Promise.race([lost, pause(ms, "released")])) === "lost" ? "lost" : "released";
  const ended = now();
  const line = { key, token: String(lease.fencingToken), who: process.pid, begun, ended, end };
  writeSync(file, `${JSON.stringify(line)}\n`);
  await lease.release().catch(() => false); // the release is retried in the background
}

/** Milliseconds of a clock that all processes of this machine share. */
function now() {
  return performance.timeOrigin + performance.now();
}

async function openClient() {
  const client = await makeClient();
  client.on("error", () => undefined);
  if (library.startsWith("redis")) {
    await client.connect();
    return { client, close: async () => client.destroy() };
  }
  return { client, close: async () => client.disconnect() };
}

async function makeClient() {
  const { createSentinel, Redis } = await import(library);
  if (Redis) {
    return new Redis({ sentinels, name });
  }
  const reconnectStrategy = (retries) => (retries > 5 ? new Error("the primary is down") : 50); // node-redis 5 would wait for a dead primary forever
  return createSentinel({
    name,
    sentinelRootNodes: sentinels,
    nodeClientOptions: { socket: { reconnectStrategy } },
  });
}

function say(event, more = {}) {
  if (process.connected) {
    process.send({ event, ...more });
  }
}

process.on("message", ({ order, ...rest }) => {
  Promise.resolve(orders[order](rest)).catch((error) =>
    say("failed", { message: error?.stack ?? String(error) }),
  );
});
await locks.withLock(`warm-up:${process.pid}`, () => undefined);
say("ready");
