import { createLocks, type Lease, type Locks } from "holdfast";
import { redlock } from "holdfast/redis";
import {
  faulty,
  manualClock,
  manualRandom,
  twin,
  type Faults,
  type ManualClock,
  type Twin,
} from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import type { Random } from "../../../../src/random.ts";

// What the simulation found, each by its shortest way there.

let clock: ManualClock;
let servers: Twin[];
let faults: Faults[];
let locks: Locks;

beforeEach(() => {
  clock = manualClock();
  servers = [0, 1, 2].map((index) =>
    twin({ clock, random: manualRandom(index), name: `n${index}`, durable: true, upForMs: 3_600_000 }),
  );
});

/** Whatever it gives is given back. */
async function triedOnce(): Promise<void> {
  await tried()
    .then((lease) => lease?.release())
    .catch(() => undefined);
}

test("a node that went silent with its vote does not keep the others from agreeing on a number", async () => {
  open();
  await warmUp();
  servers[1]?.store.hset("holdfast:fence:{lock:k}", "last", String((clock.wall() + 500) * 1000));
  faults[0]?.dropReply(1);
  void locks.tryAcquire("other").catch(() => undefined); // unanswered by n0, which is silent 50 ms later
  await clock.advance(10);
  faults[1]?.delay({ replyMs: 45 });
  faults[2]?.freeze();
  const acquired = locks.acquire("k"); // n0 votes at once, n1 votes with another number behind the silence of n0
  await clock.advance(1);
  faults[0]?.freeze();
  await clock.advance(1_000);
  faults[0]?.thaw();
  faults[2]?.thaw();
  await clock.advance(3_000);
  expect((await acquired).remainingMs()).toBeGreaterThan(0);
});

test("a restarted node votes again soon where its first examination failed", async () => {
  open();
  await warmUp();
  for (const index of [0, 1]) {
    servers[index]?.restart({ keepData: true });
    faults[index]?.dropReply(({ script }) => script === "standing", "reset");
  }
  await Promise.all([
    expect(tried()).rejects.toMatchObject({ code: "quorum-not-reached" }),
    clock.advance(3_000),
  ]);
  for (const each of faults) {
    each.dropReply(0);
  }
  await Promise.all([triedOnce(), clock.advance(3_000)]);
  const [lease] = await Promise.all([tried(), clock.advance(3_000)]);
  expect(lease?.remainingMs()).toBeGreaterThan(0);
});

test("a vote that is told once more does not interrupt the grant that it is of", async () => {
  open();
  faults[0]?.freeze();
  // The proof that messages arrive comes behind the first question, which is repeated then for a place in the queue.
  faults[2]?.delay({ requestMs: 1, replyMs: 1, messageMs: 2 });
  const extended = locks.acquire("k").then((lease) => lease.extend());
  await Promise.all([expect(extended).resolves.toBeUndefined(), clock.advance(3_000)]);
});

test("a client whose machine slept does not take all nodes for wrong about the time", async () => {
  servers.push(twin({ clock, random: manualRandom(3), name: "n3", upForMs: 3_600_000 }));
  open();
  await warmUp();
  clock.sleep(5_000);
  await Promise.all([triedOnce(), clock.advance(3_000)]);
  const [lease] = await Promise.all([tried(), clock.advance(3_000)]);
  expect(lease?.remainingMs()).toBeGreaterThan(0);
});

test("a waiter does not keep the votes that it does not count", async () => {
  servers = servers.map((_, index) =>
    twin({ clock, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
  );
  open();
  await warmUp();
  for (const index of [0, 1]) {
    servers[index]?.restart({ keepData: true });
  }
  // To another client these nodes have been up for long enough.
  const connections = servers.map((server) => server.connect());
  const other = createLocks(redlock(connections, { clock, random: manualRandom(10), maxTtlMs: 100 }));
  await clock.advance(5_000);
  void locks.acquire("k", { waitMs: 60_000 }).catch(() => undefined);
  await clock.advance(1_000);
  const acquired = other.acquire("k", { ttlMs: 100, waitMs: 20_000 });
  const [lease] = await Promise.all([acquired, clock.advance(20_000)]);
  expect(lease.fencingToken).toBeGreaterThan(0n);
});

function open(): void {
  const links = servers.map((server) => faulty(server.connect(), { clock }));
  faults = links.map(({ controls }) => controls);
  const connections = links.map(({ connection }) => connection);
  locks = createLocks(redlock(connections, { clock, random: bounded(manualRandom(9)) }));
}

/** Everybody knows everybody, and messages arrive. */
async function warmUp(): Promise<void> {
  const [lease] = await Promise.all([locks.acquire("warm"), clock.advance(100)]);
  await Promise.all([lease.release(), clock.advance(100)]);
}

function tried(): Promise<Lease | null> {
  return locks.tryAcquire("k");
}

/** Chance that ends an endless loop: each turn of one would draw from it. */
function bounded(random: Random): Random {
  let draws = 0;
  return {
    id: () => random.id(),
    fraction: () => {
      draws += 1;
      if (draws > 5_000) {
        throw new Error("asked again and again without any pause");
      }
      return random.fraction();
    },
  };
}
