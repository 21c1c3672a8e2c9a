import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { commandText } from "../../../support/diagnostics-log.ts";
import { track, FakeQuorum, refusedError, type FakeProcess } from "../../../support/fake-quorum.ts";
import { QuorumFixture } from "../../../support/quorum-fixture.ts";

// A process lets others have their turn: its next caller's request and the release travel in one call.

const withoutHandover = { locks: { handover: { max: 0, maxMs: 0 } } } as const;
const ttlMs = 60_000;

test("the next request and the release travel in one call to each node, in this order", async () => {
  const fixture = new QuorumFixture();
  const calls: string[][] = [];
  const { locks } = await fixture.client({}, (connection) =>
    altered(connection, {
      run: (script, keys, args) => {
        calls.push(namesIn(args));
        return connection.run(script, keys, args);
      },
    }),
  );
  const held = await fixture.settleWithin(10, locks.acquire("k", { ttlMs }));
  const next = track(locks.acquire("k", { ttlMs, renew: false })); // not by a handover in memory
  await fixture.advance(10);
  calls.splice(0);
  const released = held.release();
  await fixture.advance(1);
  expect(calls.slice(0, 3)).toEqual([
    ["acquire", "release"],
    ["acquire", "release"],
    ["acquire", "release"],
  ]);
  expect(await fixture.settleWithin(10, released)).toBe(true);
  await fixture.advance(20);
  expect(next.value?.remainingMs()).toBeGreaterThan(0);
});

test("without other waiters the next request is granted without a notification", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp({ locks: { handover: { max: 0, maxMs: 0 } } });
  const held = await lab.settleWithin(20, locks.acquire("k", { ttlMs }));
  const next = track(locks.acquire("k", { ttlMs }));
  await lab.clock.advance(20);
  for (const each of faults) {
    each.dropMessages((text) => text.startsWith("grant"));
  }
  expect(await lab.settleWithin(10, held.release())).toBe(true);
  await lab.clock.advance(10);
  expect(next.value?.remainingMs()).toBeGreaterThan(ttlMs / 2);
});

test("the release returns true if the client library resends it to one node", async () => {
  const fixture = new QuorumFixture();
  let requests = 0;
  const { locks } = await fixture.client({}, (connection) =>
    resending(connection, (args) => namesIn(args).includes("release") && (requests += 1) > 0),
  );
  const held = await fixture.settleWithin(10, locks.acquire("k", { ttlMs }));
  for (let caller = 0; caller < 20; caller += 1) {
    void locks.acquire("k", { ttlMs, renew: false }).catch(() => undefined); // no caller acquires the lock in memory
  }
  await fixture.advance(10);
  expect(await fixture.settleWithin(100, held.release())).toBe(true);
  expect(requests).toBeGreaterThan(1);
});

test("the release returns true if a node grants late, before the release reaches that node", async () => {
  const fixture = new QuorumFixture();
  const first = await fixture.client();
  let arrive = (): void => undefined;
  const arrives = new Promise<void>((resolve) => (arrive = resolve));
  const { locks } = await fixture.client({}, (connection) =>
    delaying(connection, (args) => connection.name === "n2" && namesIn(args)[1] === "release", arrives),
  );
  first.faults[0]?.refuse(refusedError());
  first.faults[1]?.refuse(refusedError());
  const enough = new AbortController();
  const rival = track(first.locks.acquire("k", { ttlMs, signal: enough.signal }));
  await fixture.advance(20);
  const held = await fixture.settleWithin(20, locks.acquire("k", { ttlMs }));
  const next = track(locks.acquire("k", { ttlMs, renew: false })); // not by a handover in memory
  await fixture.advance(10);
  fixture.servers[1]?.del("lock:k"); // so node 2 completes a majority
  const released = held.release();
  enough.abort(); // the rival leaves node 2, which grants the lock during its release
  await fixture.advance(10);
  arrive();
  expect(await fixture.settleWithin(1_000, released)).toBe(true);
  expect([rival.error, next.value?.remainingMs()]).toEqual([enough.signal.reason, expect.any(Number)]);
});

test("the release returns true if the next caller aborts before its request reaches a node", async () => {
  const lab = new FakeQuorum(3);
  expect(await releasedBehindWhoGaveUp(lab, await lab.warmUp(withoutHandover), [])).toBe(true);
});

test("the release returns false if most nodes have lost the grant and the next caller aborts", async () => {
  const lab = new FakeQuorum(3);
  expect(await releasedBehindWhoGaveUp(lab, await lab.warmUp(withoutHandover), [0, 1])).toBe(false);
});

async function releasedBehindWhoGaveUp(
  lab: FakeQuorum,
  { locks, faults }: FakeProcess,
  forgetful: readonly number[],
): Promise<boolean> {
  const held = await lab.settleWithin(20, locks.acquire("k", { ttlMs }));
  const enough = new AbortController();
  const next = track(locks.acquire("k", { ttlMs, signal: enough.signal }));
  await lab.clock.advance(20);
  for (const each of faults) {
    each.refuse(new Error("LOADING Redis is loading the dataset in memory"));
  }
  const released = held.release();
  await lab.clock.advance(20);
  enough.abort(new Error("enough"));
  for (const index of forgetful) {
    lab.nodes[index]?.flushAll();
  }
  for (const each of faults) {
    each.refuse(null);
  }
  const answer = await lab.settleWithin(1_900, released);
  expect(next.error).toBeDefined();
  return answer;
}

/** The operations of a call. */
function namesIn(args: readonly string[]): string[] {
  return commandText(args).filter((each) => ["acquire", "release"].includes(each));
}

/** Some calls reach the server once this promise has settled. */
function delaying(
  connection: Connection,
  isLate: (args: readonly string[]) => boolean,
  arrives: Promise<void>,
): Connection {
  return altered(connection, {
    run: async (script, keys, args) => {
      if (isLate(args)) {
        await arrives;
      }
      return connection.run(script, keys, args);
    },
  });
}

/** Acts like a client that lost its connection after the server had executed the request, and resends it. */
function resending(connection: Connection, isSentAgain: (args: readonly string[]) => boolean): Connection {
  const listeners = new Set<() => void>();
  return altered(connection, {
    run: async (script, keys, args) => {
      if (isSentAgain(args)) {
        await connection.run(script, keys, args);
        for (const listener of listeners) {
          listener();
        }
      }
      return connection.run(script, keys, args);
    },
    onDown: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
}
