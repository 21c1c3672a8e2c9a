import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Lease, Lockable } from "holdfast";
import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { QuorumFixture } from "../../../support/quorum-fixture.ts";
import { commandText } from "../../../support/diagnostics-log.ts";
import { GatedConnection } from "../single/gated-connection.ts";

// Requests, replies and notifications that arrive late or in another order.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
const fence = "holdfast:fence:{lock:k}";

test("a grant by notification to a waiter that has left ends with its claim", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  for (const faults of waiter.faults) {
    faults.duplicate(1, 400); // a duplicate queues the request again after the waiter has left
  }
  const caller = new AbortController(); // after the end of `waitMs` a node would skip the queue entry
  const left = waiter.locks.acquire("k", { ttlMs, signal: caller.signal }).catch((error: unknown) => error);
  await fixture.advance(100);
  caller.abort("left");
  expect(await fixture.settleWithin(290, left)).toBe("left");
  expect(fixture.servers.map((server) => server.dump(queue))).toEqual([undefined, undefined, undefined]);
  await fixture.advance(20);
  expect(fixture.servers.map((server) => server.dump(queue))).not.toContain(undefined);
  await fixture.settleWithin(10, held.release());
  await fixture.advance(3_010);
  expect(fixture.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
});

test("a grant that follows its own release is released again", async () => {
  const fixture = new QuorumFixture();
  const gates: GatedConnection[] = [];
  const { locks } = await fixture.client({}, (connection) => gateOf(connection, gates));
  close(gates);
  const refused = locks.acquire("k", { ttlMs, waitMs: 300 }).catch((error: unknown) => error);
  expect(await fixture.settleWithin(1_000, refused)).toMatchObject({ code: "quorum-not-reached" });
  gates.forEach((gate) => gate.open());
  await fixture.advance(50);
  expect(fixture.servers.map((server) => server.hget(fence, "first"))).not.toContain(undefined); // each node granted the lock
  expect(fixture.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
});

test("a queue entry that is added after its waiter has left is removed", async () => {
  const fixture = new QuorumFixture();
  const gates: GatedConnection[] = [];
  const holder = await fixture.client();
  const waiter = await fixture.client({}, (connection) => gateOf(connection, gates));
  await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  close(gates);
  const refused = waiter.locks.acquire("k", { ttlMs, waitMs: 300 }).catch((error: unknown) => error);
  expect(await fixture.settleWithin(1_000, refused)).toMatchObject({ code: "quorum-not-reached" });
  gates.forEach((gate) => gate.open());
  await fixture.advance(50);
  expect(fixture.servers.map((server) => server.dump(queue))).toEqual([undefined, undefined, undefined]);
});

test("a node that replies to the acquire during the release is released once", async () => {
  const fixture = new QuorumFixture();
  const operations: string[] = [];
  const { locks, faults } = await fixture.client({}, (connection) => recorded(connection, operations));
  faults[2]?.delay({ replyMs: 10 });
  const lease = await fixture.settleWithin(5, locks.acquire("k", { ttlMs }));
  operations.splice(0);
  await fixture.settleWithin(5, lease.release());
  await fixture.advance(ttlMs);
  expect(operations.filter(Boolean)).toEqual(["release", "release", "release"]); // the registration of the process has no name
});

test("a node that is refilled after the release is released again", async () => {
  const fixture = new QuorumFixture();
  const gates: GatedConnection[] = [];
  const { locks } = await fixture.client({}, (connection) => gateOf(connection, gates));
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  fixture.loseData(2);
  close(gates);
  await fixture.settleWithin(10, lease.extend(ttlMs));
  await fixture.settleWithin(100, lease.release());
  gates.forEach((gate) => gate.open());
  await fixture.advance(50);
  expect(fixture.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
});

test("a node that reports the missing lease after the release is not refilled", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client();
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  fixture.loseData(2);
  faults[2]?.delay({ replyMs: 30 });
  await fixture.settleWithin(10, lease.extend(ttlMs));
  await fixture.settleWithin(10, lease.release());
  await fixture.advance(100);
  expect(fixture.servers[2]?.hget(fence, "first")).toBeUndefined(); // no refill was sent, which close() might leave there
});

test("the release returns true although it meets a late reply that shows the request queued", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  fixture.servers[2]?.set(lock, "of somebody else", ttlMs); // the lease has only two nodes
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  waiter.faults[1]?.delay({ replyMs: 120, messageMs: 0 });
  const acquired = waiter.locks.acquire("k", { ttlMs, renew: false });
  await fixture.advance(60); // longer than the node timeout: the node gets no request before its reply
  waiter.faults[1]?.delay({});
  await fixture.settleWithin(2, held.release());
  const lease = await fixture.settleWithin(2, acquired);
  expect(await fixture.settleWithin(1_000, lease.release())).toBe(true);
});

test("a grant by notification soon has its whole TTL, even without renewal", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  const acquired = waiter.locks.acquire("k", { ttlMs, renew: false });
  await fixture.advance(100);
  await fixture.settleWithin(10, held.release());
  const lease = await fixture.settleWithin(10, acquired);
  await fixture.advance(50);
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
});

test("a request that settles the number of its majority keeps its votes, though an earlier request wants them", async () => {
  const fixture = new QuorumFixture();
  const [rival, bidder] = [await fixture.client(), await fixture.client()];
  for (const { faults } of [rival, bidder]) {
    faults[2]?.freeze();
  }
  fixture.servers[0]?.call("HSET", fence, "last", String((fixture.clock.wall() + 500) * 1000)); // so that the nodes do not agree at once
  rival.faults.slice(0, 2).forEach((faults) => faults.delay({ requestMs: 10 }));
  bidder.faults.slice(0, 2).forEach((faults) => faults.delay({ replyMs: 5, messageMs: 0 }));
  const order: string[] = [];
  const note = (name: string, lease: Promise<Lease>): void => {
    void lease.then(
      () => order.push(name),
      () => undefined,
    );
  };
  note("rival", rival.locks.acquire("k", { ttlMs }));
  await fixture.advance(1);
  note("bidder", bidder.locks.acquire("k", { ttlMs }));
  await fixture.advance(2);
  bidder.faults.slice(0, 2).forEach((faults) => faults.delay({ replyMs: 30, messageMs: 0 })); // of the requests that settle the number
  await fixture.advance(200);
  expect(order).toEqual(["bidder"]);
});

test("a new grant to the next caller is another attempt, with another token", async () => {
  const fixture = new QuorumFixture();
  const attempts = (): (string | undefined)[] =>
    fixture.servers.map((server) => server.get(lock)?.split(":")[0]);
  const { locks } = await fixture.client();
  const first = await fixture.settleWithin(10, locks.acquire("k", { ttlMs }));
  const before = attempts();
  const next = locks.acquire("k", { ttlMs, renew: false }); // not by a handover in memory
  await fixture.advance(5);
  await fixture.settleWithin(10, first.release());
  await fixture.settleWithin(10, next);
  for (const attempt of attempts()) {
    expect(attempt).toMatch(/^[0-9a-f]{32}$/);
    expect(before).not.toContain(attempt);
  }
});

test.each(["mutex", "read lock"])(
  "a transferred %s is adopted though each node was refilled with it",
  async (kind) => {
    const fixture = new QuorumFixture();
    const [maker, adopter] = [await fixture.client(), await fixture.client()];
    const own: Lockable = kind === "mutex" ? maker.locks.mutex("k") : maker.locks.readWrite("k").read;
    const lease = await fixture.settleWithin(10, own.acquire({ ttlMs }));
    for (const [index, server] of fixture.servers.entries()) {
      fixture.loseData(index);
      server.call("HSET", fence, "last", String((fixture.clock.wall() + 500) * 1000)); // the node gave others a larger number in between
      await fixture.advance(ttlMs);
      expect(server.keys()).toContain(lock);
    }
    const adopted = await fixture.settleWithin(10, adopter.locks.adopt(lease.transfer()));
    expect(adopted.fencingToken).toBe(lease.fencingToken);
    expect(await fixture.settleWithin(10, adopted.release())).toBe(true);
  },
);

test("an inquiry for an older number than that of the vote is dropped", async () => {
  const fixture = new QuorumFixture();
  const listeners: Listener[] = [];
  const { locks, faults } = await fixture.client({}, (connection) => heardBy(connection, listeners));
  faults.slice(1).forEach((each) => each.freeze());
  void locks.acquire("k", { ttlMs }).catch(() => undefined);
  await fixture.advance(20);
  const [server] = fixture.servers as [FakeRedis];
  const [listener] = listeners as [Listener];
  const numberThere = (): number => Number(server.hget(fence, "first"));
  const first = numberThere();
  listener.message(`inquiry ${server.get(lock)} ${first - 1}`);
  await fixture.advance(20);
  expect(numberThere()).toBe(first);
  listener.message(`inquiry ${server.get(lock)} ${first}`);
  await fixture.advance(20);
  expect(numberThere()).toBeGreaterThan(first); // yielded, and granted again
});

type Listener = Parameters<Connection["subscribe"]>[2];

function gateOf(connection: Connection, gates: GatedConnection[]): Connection {
  const gate = new GatedConnection(connection);
  gates.push(gate);
  return gate;
}

function close(gates: readonly GatedConnection[]): void {
  for (const gate of gates) {
    gate.isClosed = true;
  }
}

/** Records the first operation of each call. */
function recorded(connection: Connection, operations: string[]): Connection {
  return altered(connection, {
    run: (script, keys, args) => {
      operations.push(commandText(args)[0] ?? "");
      return connection.run(script, keys, args);
    },
  });
}

function heardBy(connection: Connection, listeners: Listener[]): Connection {
  return altered(connection, {
    subscribe: (channel, kind, listener) => {
      listeners.push(listener);
      return connection.subscribe(channel, kind, listener);
    },
  });
}
