import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Lease, type Locks } from "holdfast";
import { redlock, type Connection, type RedlockOptions } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import type { Random } from "../../../../src/runtime/random.ts";
import { steppedClock } from "../../../support/fake-quorum.ts";

// Failures that the simulation found, each by its shortest schedule.

let clock: ManualClock;
let servers: FakeRedis[];
let faults: FaultInjector[];
let locks: Locks;

beforeEach(() => {
  clock = manualClock();
  servers = [0, 1, 2].map(
    (index) =>
      new FakeRedis({
        clock,
        random: manualRandom(index),
        name: `n${index}`,
        durable: true,
        upForMs: 3_600_000,
      }),
  );
});

/** Tries once, and releases the lease if there is one. */
async function triedOnce(): Promise<void> {
  await tried()
    .then((lease) => lease?.release())
    .catch(() => undefined);
}

test("a node that becomes unresponsive with its vote does not keep the others from agreeing on a number", async () => {
  open();
  await warmUp();
  servers[1]?.call("HSET", "holdfast:fence:{lock:k}", "last", String((clock.wall() + 500) * 1000));
  faults[0]?.dropReply(1);
  void locks.tryAcquire("other").catch(() => undefined); // without a reply of n0, which is unresponsive 50 ms later
  await clock.advance(10);
  faults[1]?.delay({ replyMs: 45 });
  faults[2]?.freeze();
  const acquired = locks.acquire("k"); // n0 votes at once, and n1 votes with another number after n0 became unresponsive
  await clock.advance(1);
  faults[0]?.freeze();
  await clock.advance(1_000);
  faults[0]?.thaw();
  faults[2]?.thaw();
  await clock.advance(3_000);
  expect((await acquired).remainingMs()).toBeGreaterThan(0);
});

test("a restarted node votes again soon after its first examination failed", async () => {
  open();
  await warmUp();
  for (const index of [0, 1]) {
    servers[index]?.restart({ keepData: true });
    faults[index]?.dropReply(({ script }) => script === "health", "reset");
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

test("a vote that is reported twice does not interrupt its own grant", async () => {
  open();
  faults[0]?.freeze();
  // The verification of notifications comes after the first request, which is then repeated for a queue entry.
  faults[2]?.delay({ requestMs: 1, replyMs: 1, messageMs: 2 });
  const extended = locks.acquire("k").then((lease) => lease.extend());
  await Promise.all([expect(extended).resolves.toBeUndefined(), clock.advance(3_000)]);
});

test("a client whose machine slept does not regard all nodes as wrong about the time", async () => {
  servers.push(new FakeRedis({ clock, random: manualRandom(3), name: "n3", upForMs: 3_600_000 }));
  open();
  await warmUp();
  clock.sleep(5_000);
  await Promise.all([triedOnce(), clock.advance(3_000)]);
  const [lease] = await Promise.all([tried(), clock.advance(3_000)]);
  expect(lease?.remainingMs()).toBeGreaterThan(0);
});

test("a waiter does not keep votes that it does not count", async () => {
  servers = servers.map(
    (_, index) =>
      new FakeRedis({ clock, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
  );
  open();
  await warmUp();
  for (const index of [0, 1]) {
    servers[index]?.restart({ keepData: true });
  }
  // For another client these nodes have been up for long enough.
  const connections = servers.map((server) => server.connect());
  const other = createLocks(redlock(connections, { clock, random: manualRandom(10), maxTtlMs: 100 }));
  await clock.advance(5_000);
  void locks.acquire("k", { waitMs: 60_000 }).catch(() => undefined);
  await clock.advance(1_000);
  const acquired = other.acquire("k", { ttlMs: 100, waitMs: 20_000 });
  const [lease] = await Promise.all([acquired, clock.advance(20_000)]);
  expect(lease.fencingToken).toBeGreaterThan(0n);
});

test("a lease with a next caller is also released on a node that does not vote", async () => {
  open();
  await warmUp();
  servers[0]?.setDurable(false);
  const [held] = await Promise.all([locks.acquire("k"), clock.advance(100)]);
  servers[0]?.restart({ keepData: true });
  await Promise.all([held.extend(), clock.advance(100)]); // the restart is noticed
  const next = locks.acquire("k", { renew: false }); // not by a handover in memory
  const given = servers[0]?.get("lock:k");
  await Promise.all([held.release(), next, clock.advance(100)]);
  expect(given).toEqual(expect.any(String));
  expect(servers[0]?.get("lock:k")).not.toBe(given);
});

test("a vote by notification is kept for as long as the other votes are awaited", async () => {
  const [one, other, third] = servers.map((server) => server.connect());
  const most = createLocks(redlock([one, other] as Connection[], { clock, random: manualRandom(10) }));
  const rest = createLocks(redlock([third] as Connection[], { clock, random: manualRandom(11) }));
  open({ claimMs: 100 });
  await warmUp();
  const [, held] = await Promise.all([most.acquire("k"), rest.acquire("k"), clock.advance(100)]);
  void locks.acquire("k", { waitMs: 60_000 }).catch(() => undefined);
  await clock.advance(50);
  await Promise.all([held.release(), clock.advance(120)]);
  await Promise.all([expect(rest.tryAcquire("k")).resolves.toBeNull(), clock.advance(100)]);
});

test("a try that yielded a vote leaves no queue entry", async () => {
  const [one, other, third] = servers.map((server) => server.connect());
  const most = createLocks(redlock([one, other] as Connection[], { clock, random: manualRandom(10) }));
  const { connection, controls } = faulty(third as Connection, { clock });
  const rival = createLocks(redlock([connection], { clock, random: manualRandom(11) }));
  open();
  await warmUp();
  await Promise.all([rival.acquire("warm"), clock.advance(100)]);
  await Promise.all([most.acquire("k"), clock.advance(100)]);
  controls.delay({ requestMs: 10 });
  faults[0]?.delay({ replyMs: 30 });
  faults[1]?.delay({ replyMs: 30 });
  void rival.acquire("k").catch(() => undefined); // it is earlier in the queue, but its request is late
  await clock.advance(1);
  await Promise.all([expect(tried()).resolves.toBeNull(), clock.advance(100)]);
  expect(servers[2]?.dump("holdfast:queue:{lock:k}")).toBeUndefined();
});

test("a number that is being raised on the nodes is no longer the lease's", async () => {
  for (const index of [3, 4]) {
    servers.push(
      new FakeRedis({ clock, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
    );
  }
  open();
  await warmUp();
  servers[0]?.call("HSET", "holdfast:fence:{lock:k}", "last", String((clock.wall() + 500) * 1000));
  faults[0]?.delay({ replyMs: 15 });
  faults[3]?.delay({ requestMs: 11, replyMs: 11 });
  faults[4]?.freeze();
  const acquired = locks.acquire("k");
  await clock.advance(1);
  for (const each of faults.slice(1, 3)) {
    each.delay({ requestMs: 5, replyMs: 5 });
    each.dropSubscription(); // the node gets another request, and replies while its number is being raised
  }
  await clock.advance(100);
  const extended = acquired.then((lease) => lease.extend());
  await Promise.all([expect(extended).resolves.toBeUndefined(), clock.advance(3_000)]);
});

test("a node whose clock is ahead does not skip a waiter before its deadline", async () => {
  const ahead = steppedClock(clock, () => 190);
  servers = [clock, clock, ahead, ahead].map(
    (own, index) =>
      new FakeRedis({ clock: own, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
  );
  open();
  await warmUp();
  const connections = servers.map((server) => server.connect());
  const others = createLocks(redlock(connections, { clock, random: manualRandom(10) }));
  const [held] = await Promise.all([others.acquire("k"), clock.advance(100)]);
  let isGranted = false;
  void locks.acquire("k", { waitMs: 200 }).then(
    () => (isGranted = true),
    () => undefined,
  );
  await clock.advance(10);
  void others.acquire("k").catch(() => undefined);
  await clock.advance(100);
  await Promise.all([held.release(), clock.advance(50)]);
  expect(isGranted).toBe(true);
});

function open(options: RedlockOptions = {}): void {
  const links = servers.map((server) => faulty(server.connect(), { clock }));
  faults = links.map(({ controls }) => controls);
  const connections = links.map(({ connection }) => connection);
  locks = createLocks(
    redlock(connections, {
      clock,
      random: bounded(manualRandom(9)),
      restartGuard: "trust-durable",
      ...options,
    }),
  );
}

/** All clients have connected to all nodes, and notifications arrive. */
async function warmUp(): Promise<void> {
  const [lease] = await Promise.all([locks.acquire("warm"), clock.advance(100)]);
  await Promise.all([lease.release(), clock.advance(100)]);
}

function tried(): Promise<Lease | null> {
  return locks.tryAcquire("k");
}

/** A random source that ends an endless loop, because each turn of such a loop draws a number. */
function bounded(random: Random): Random {
  let draws = 0;
  return {
    id: () => random.id(),
    nextFloat: () => {
      draws += 1;
      if (draws > 5_000) {
        throw new Error("the request was repeated without any pause");
      }
      return random.nextFloat();
    },
  };
}
