// The work of a process that contends with others for a kind of lock. See shares.mjs and quorum-worker.mjs.
//
// Its tasks append the begin and end of each turn to `record`, in the format of event-loop-turns.ts:
//
//   begin|end <process>.<task> <weight> <fencing token> <key>

import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const waitMs = 60_000;

/** @param kind "read-write" | "semaphore" | "all" | "reentrant" */
export async function contend(locks, name, { kind, keys, tasks, rounds, record }) {
  const file = openSync(record, "a");
  const write = (what, who, weight, lease) => {
    const lines = lease.keys.map(
      (key) => `${what} ${who} ${weight} ${lease.fencingTokens.get(key)} ${key}\n`,
    );
    writeSync(file, lines.join(""));
  };
  const inside = async (who, weight, lease, more) => {
    write("begin", who, weight, lease);
    await pause(1);
    await more?.();
    lease.throwIfLost();
    write("end", who, weight, lease);
  };
  await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      for (let round = 0; round < rounds; round += 1) {
        await turns[kind]({ locks, keys, task, round, who: `${name}.${task}`, inside });
      }
    }),
  );
}

const turns = {
  /** One acquire in ten is a writer, with a weight of 1 000. */
  async "read-write"({ locks, keys: [key], task, round, who, inside }) {
    const { read, write } = locks.readWrite(key);
    const writes = (task + round) % 10 === 0;
    await (writes ? write : read).withLock({ waitMs }, (lease) => inside(who, writes ? 1000 : 1, lease));
  },

  /** Every third acquire needs two of the four permits. */
  async semaphore({ locks, keys: [key], task, round, who, inside }) {
    const permits = (task + round) % 3 === 0 ? 2 : 1;
    const semaphore = locks.semaphore(key, { limit: 4 });
    await semaphore.withLock({ permits, waitMs }, (lease) => inside(who, permits, lease));
  },

  /** Acquires two to four of the keys, in any order. Every second acquire begins with a try, which gets all keys or none. */
  async all({ locks, keys, round, who, inside }) {
    const some = shuffled(keys).slice(0, 2 + Math.floor(Math.random() * 3));
    const lock = locks.all(some);
    const work = (lease) => inside(who, 1, lease);
    const isDone = round % 2 === 0 && (await lock.tryWithLock(work)).ran;
    if (!isDone) {
      await lock.withLock({ waitMs }, work);
    }
  },

  /** Nests by two concurrent `withLock` branches, or by a session that outlives its first lease. Nested leases weigh nothing. */
  async reentrant({ locks, keys: [key], round, who, inside }) {
    if (round % 2 === 0) {
      const lock = locks.reentrant(key);
      const nested = () => lock.withLock({ waitMs }, (lease) => inside(who, 0, lease));
      await lock.withLock({ waitMs }, (lease) =>
        inside(who, 1, lease, () => Promise.all([nested(), nested()])),
      );
      return;
    }
    const lock = locks.reentrant(key, { session: who, waitMs });
    const first = await lock.acquire();
    let second;
    await inside(who, 1, first, async () => {
      second = await lock.acquire();
      await inside(who, 0, second, () => lock.withLock((lease) => inside(who, 0, lease)));
      await second.release();
      second = await lock.acquire();
    });
    await first.release();
    await inside(who, 0, second);
    await second.release();
  },
};

function shuffled(keys) {
  return keys
    .map((key) => ({ key, rank: Math.random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ key }) => key);
}
