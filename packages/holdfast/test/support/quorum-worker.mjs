// A process with drivers of a quorum, which executes the orders of its parent over IPC. See quorum-workers.ts.
//
//   node quorum-worker.mjs <{ name, drivers: [[port, ...], ...], redlock, locks } as JSON>
//
// It uses the built library, as users have it, and ends with its parent.

import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { Redis } from "ioredis";

import { redlock } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";
import { contend } from "./contending.mjs";

const { name, drivers, redlock: driverOptions, locks: locksOptions } = JSON.parse(process.argv[2]);
const members = drivers.map((ports) =>
  createLocks(redlock(ports.map(connect), { restartGuard: "off", ...driverOptions }), {
    owner: name,
    ...locksOptions,
  }),
);
const leases = new Map();
const elections = new Map();
const say = (event, more = {}) => process.connected && process.send({ event, ...more });

process.on("disconnect", () => process.exit());
process.on("unhandledRejection", (error) => say("failed", { message: `unhandled: ${error?.stack}` }));

function connect(port) {
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 50 });
  client.on("error", () => undefined);
  return client;
}

const orders = {
  /** Waits for the subscriptions to `count` nodes, and loads their scripts. */
  async warmUp({ count }) {
    for (const [index, locks] of members.entries()) {
      for (;;) {
        const states = await locks.admin.nodes();
        if (states.filter(({ notifications }) => notifications === "verified").length >= count) {
          break;
        }
        await pause(10);
      }
      await locks.withLock(`warm-up:${name}:${index}`, () => undefined);
    }
    say("warm");
  },

  /** At the time `at`, `callers` callers of each driver acquire `key`, record the turn, hold for `holdMs` and release, once. */
  async takeTurns({ key, record, callers, acquire, holdMs, at }) {
    const file = openSync(record, "a");
    await moment(at);
    const turns = await each(callers, async (locks, who) => {
      const since = performance.now();
      const lease = await locks.acquire(key, acquire);
      const waitedMs = performance.now() - since;
      writeSync(file, `begin ${who} ${lease.fencingToken}\n`);
      await pause(holdMs);
      const isLost = lease.remainingMs() === 0;
      writeSync(file, `end ${who} ${lease.fencingToken}\n`);
      await lease.release();
      return { waitedMs, isLost };
    });
    say("done", {
      waitedMs: turns.map(({ waitedMs }) => waitedMs),
      lost: turns.filter(({ isLost }) => isLost).length,
    });
  },

  /** At the time `at`, `callers` callers of each driver try to acquire `key`. The winner holds it until the order `release`. */
  async tryAll({ key, callers, acquire, at }) {
    await moment(at);
    const won = await each(callers, async (locks, who) => {
      const lease = await locks.tryAcquire(key, acquire);
      if (!lease) {
        return null;
      }
      leases.set(key, lease);
      return who;
    });
    say("tried", { won: won.filter((who) => who !== null) });
  },

  /** Contends for a kind of lock. See contending.mjs. */
  async contend(contention) {
    await contend(members[0], name, contention);
    say("contended");
  },

  async acquire({ key, options }) {
    keep(await members[0].acquire(key, options));
  },

  async read({ key, options }) {
    keep(await members[0].readWrite(key).read.acquire(options));
  },

  async all({ keys, options }) {
    keep(await members[0].all(keys).acquire(options));
  },

  async campaign({ key, options }) {
    const election = elections.get(key) ?? members[0].election(key);
    elections.set(key, election);
    keep(await election.campaign(options));
  },

  async resign({ key }) {
    say("resigned", { key, resigned: await elections.get(key).resign() });
  },

  async release({ key }) {
    const lease = leases.get(key);
    say("released", { key, released: lease ? await lease.release() : false });
  },

  /** Reports until when the holder may rely on its lease. */
  async judge({ key }) {
    const lease = leases.get(key);
    const validUntil = now() + (lease.validUntil - performance.now());
    say("judged", { key, validUntil, isLost: lease.remainingMs() === 0 });
  },

  async transfer({ key }) {
    say("transferred", { serialized: leases.get(key).transfer() });
  },

  async adopt({ serialized }) {
    keep(await members[0].adopt(serialized));
  },

  async close() {
    await Promise.all(members.map((locks) => locks.close()));
    process.exit();
  },
};

function keep(lease) {
  const { key, fencingToken } = lease;
  leases.set(key, lease);
  const at = now();
  say("granted", { key, fencingToken: String(fencingToken), at, validUntil: at + lease.remainingMs() });
}

function each(callers, call) {
  return Promise.all(
    members.flatMap((locks, index) =>
      Array.from({ length: callers }, (_, caller) => call(locks, `${name}.${index}.${caller}`)),
    ),
  );
}

/** Milliseconds of a clock that all processes of the machine share. */
function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function moment(at) {
  await pause(Math.max(0, at - now() - 5));
  while (now() < at) {
    // a busy wait, because timers are not exact enough
  }
}

process.on("message", ({ order, ...rest }) => {
  Promise.resolve(orders[order](rest)).catch((error) =>
    say("failed", { message: error?.stack ?? String(error) }),
  );
});
say("ready");
