// A process that contends for locks, and executes the orders of its parent over IPC. See workers.ts.
//
//   node worker.mjs <name> <port> <LocksOptions as JSON> [cluster]
//
// It uses the built library, as users have it, and ends with its parent.

import { subscribe } from "node:diagnostics_channel";
import { getEventListeners, setMaxListeners } from "node:events";
import { openSync, writeSync } from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

import { Cluster, Redis } from "ioredis";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";

setPriority(10); // many busy workers must not starve the tests of other files

const [name, port, options, topology] = process.argv.slice(2);
const server = { host: "127.0.0.1", port: Number(port) };
const client = topology === "cluster" ? new Cluster([server]) : new Redis(server);
const locks = createLocks(redis(client), JSON.parse(options));
const leases = new Map();
const work = { isOver: false, wanted: Infinity, counted: [] };

const say = (event, more = {}) => process.connected && process.send({ event, ...more });

process.on("disconnect", () => process.exit());
process.on("unhandledRejection", (error) => say("failed", { message: `unhandled: ${error?.stack}` }));
client.on("error", () => undefined);
subscribe("holdfast:queued", ({ key }) => say("queued", { key }));

const orders = {
  /** Loads the scripts and determines the server's time, because the first round trips of a process are slow. */
  async warmUp() {
    for (let i = 0; i < 50; i++) {
      await locks.withLock(`warm-up:${name}`, () => undefined);
    }
    say("warm");
  },

  /** `tasks` callers acquire `key`, record it, hold it for `holdMs` and release it, until `stop`. */
  async contend({ key, tasks, record, acquire, holdMs }) {
    const file = openSync(record, "a");
    const waits = [];
    let losses = 0;
    work.counted = Array.from({ length: tasks }, () => 0);
    work.isOver = false;
    work.wanted = 1;
    const task = async (_, number) => {
      const who = `${name}.${number}`;
      while (!work.isOver) {
        const since = performance.now();
        await locks.withLock(key, acquire, async (lease) => {
          waits.push(performance.now() - since);
          lease.signal.addEventListener("abort", () => (losses += 1));
          writeSync(file, `begin ${who} ${lease.fencingToken}\n`);
          if (holdMs > 0) {
            await pause(holdMs);
          }
          writeSync(file, `end ${who} ${lease.fencingToken}\n`);
        });
        work.counted[number] += 1;
        if (work.counted[number] === work.wanted && Math.min(...work.counted) === work.wanted) {
          say("counted", { wanted: work.wanted });
        }
      }
    };
    await Promise.all(Array.from({ length: tasks }, task));
    say("done", { waits, losses });
  },

  /** Resets the counts, and waits until every task has acquired `wanted` times. */
  count({ wanted }) {
    work.counted.fill(0);
    work.wanted = wanted;
  },

  stop() {
    work.isOver = true;
  },

  async acquire({ key, options: acquire }) {
    const lease = await locks.acquire(key, acquire);
    leases.set(key, lease);
    say("granted", { key, fencingToken: String(lease.fencingToken) });
  },

  async release({ key }) {
    say("released", { key, released: await leases.get(key).release() });
  },

  /** Waits, records its turn, and releases. */
  async takeTurn({ key, record, who }) {
    const file = openSync(record, "a");
    await locks.withLock(key, { waitMs: 60_000 }, ({ fencingToken }) => {
      writeSync(file, `begin ${who} ${fencingToken}\nend ${who} ${fencingToken}\n`);
    });
    say(`turn ${who}`);
  },

  /** Starts and aborts `count` waits at once, `rounds` times. Reports the remaining listeners, timers and heap growth. */
  async giveUp({ key, count, rounds }) {
    const once = async (waiters) => {
      const controller = new AbortController();
      setMaxListeners(0, controller.signal); // prevents Node's warning about more than ten listeners
      const reason = new Error("enough");
      const acquire = { signal: controller.signal, waitMs: 60_000 };
      const settled = Promise.allSettled(Array.from({ length: waiters }, () => locks.acquire(key, acquire)));
      await whileNot(async () => [1, waiters].includes((await locks.inspect(key)).waiterCount));
      controller.abort(reason);
      const outcomes = await settled;
      await whileNot(async () => (await locks.inspect(key)).waiterCount === 0);
      const wrong = outcomes.filter((outcome) => outcome.reason !== reason).length;
      return wrong + getEventListeners(controller.signal, "abort").length;
    };
    let wrong = await once(100); // creates all lazily created objects first
    const [timers, heap] = [timerCount(), await heapUsed()];
    for (let round = 0; round < rounds; round++) {
      wrong += await once(count);
    }
    const heapGrowth = (await heapUsed()) - heap;
    say("gaveUp", { wrong, heapGrowth, timers: timerCount() - timers });
  },

  async close() {
    await locks.close();
    client.disconnect();
    process.disconnect();
  },
};

async function whileNot(condition) {
  while (!(await condition())) {
    await pause(5);
  }
}

function timerCount() {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}

/** The heap after garbage collections, with time for finalizers in between. */
async function heapUsed() {
  for (let i = 0; i < 3; i++) {
    await pause(1);
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}

process.on("message", ({ order, ...rest }) => {
  Promise.resolve(orders[order](rest)).catch((error) =>
    say("failed", { message: error?.stack ?? String(error) }),
  );
});
say("ready");
