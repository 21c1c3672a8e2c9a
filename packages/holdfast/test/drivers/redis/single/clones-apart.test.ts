import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Lease, type Locks } from "holdfast";
import { redis, redlock, type Connection } from "holdfast/redis";
import { faulty, manualRandom, type FaultInjector } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import { QuorumFixture } from "../../../support/quorum-fixture.ts";

// Two processes have one client id, as after the snapshot of a virtual machine, and one token for a lease or a
// request.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
const client = "c".repeat(32);
const tokenForm = /[\da-f]{32}:[\da-f]{32}:\d+/g;

interface Clone {
  readonly locks: Locks;
  readonly faults: readonly FaultInjector[];
}

describe.each(["one server", "a quorum"])("a clone: %s", (engine) => {
  test("that notices the other loses its leases, and releases nothing", async () => {
    const fixture = new QuorumFixture(engine === "one server" ? 1 : 3);
    const here = await open(fixture, engine, client, 1);
    const lease = await fixture.settleWithin(50, here.locks.acquire("k", { ttlMs }));
    const [token] = tokensIn(fixture.servers[0]?.dump(lock));
    const there = await open(fixture, engine, client, 2);
    const copy = await fixture.settleWithin(
      50,
      there.locks.adopt({ ...serialized(lease), token: token ?? "" }),
    );
    await fixture.advance(50);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "suspended" });
    expect(await fixture.settleWithin(3_000, lease.release())).toBe(false);
    await fixture.settleWithin(50, copy.extend(ttlMs));
    expect(copy.signal.aborted).toBe(false);
    for (const server of fixture.servers) {
      expect(tokensIn(server.dump(lock))).toEqual([token]);
    }
    const other = await fixture.settleWithin(1_000, here.locks.acquire("other", { ttlMs }));
    expect(await fixture.settleWithin(50, other.release())).toBe(true);
  });

  test("that notices the other waits with a new token, and leaves the former token to the other", async () => {
    const fixture = new QuorumFixture(engine === "one server" ? 1 : 3);
    const holder = await open(fixture, engine, "d".repeat(32), 3);
    const here = await open(fixture, engine, client, 1);
    const held = await fixture.settleWithin(50, holder.locks.acquire("k", { ttlMs }));
    const waiting = here.locks.acquire("k", { ttlMs, waitMs: 60_000 });
    await fixture.advance(50);
    const before = fixture.servers.map((server) => tokensIn(server.dump(queue)));
    expect(before[0]).toHaveLength(1);
    await open(fixture, engine, client, 2);
    await fixture.advance(1_000);
    for (const [index, server] of fixture.servers.entries()) {
      const tokens = tokensIn(server.dump(queue));
      expect(tokens).toHaveLength(2);
      expect(tokens).toContain(before[index]?.[0]);
    }
    expect(await fixture.settleWithin(50, held.release())).toBe(true);
    const lease = await fixture.settleWithin(20_000, waiting); // after the claim of the clone
    expect(tokensIn(fixture.servers[0]?.dump(lock))).not.toContain(before[0]?.[0]);
    expect(await fixture.settleWithin(50, lease.release())).toBe(true);
  });

  test("leaves alone a grant of the other before it notices the other", async () => {
    const fixture = new QuorumFixture(engine === "one server" ? 1 : 3);
    const holder = await open(fixture, engine, "d".repeat(32), 3);
    const here = await open(fixture, engine, client, 1);
    const held = await fixture.settleWithin(50, holder.locks.acquire("k", { ttlMs }));
    const waiting = here.locks.acquire("k", { ttlMs, waitMs: 60_000 });
    await fixture.advance(50);
    const [token] = tokensIn(fixture.servers[0]?.dump(queue));
    for (const faults of here.faults) {
      faults.delay({ messageMs: 2_000 });
    }
    await open(fixture, engine, client, 2);
    await fixture.settleWithin(50, held.release());
    await fixture.advance(100);
    for (const server of fixture.servers) {
      expect(tokensIn(server.dump(lock))).toEqual([token]);
    }
    for (const faults of here.faults) {
      faults.delay({});
    }
    const lease = await fixture.settleWithin(20_000, waiting);
    expect(await fixture.settleWithin(50, lease.release())).toBe(true);
  });

  test("is not assumed because of a late ping of one's own", async () => {
    const fixture = new QuorumFixture(engine === "one server" ? 1 : 3);
    const here = await open(fixture, engine, client, 1);
    const lease = await fixture.settleWithin(50, here.locks.acquire("k", { ttlMs }));
    for (const faults of here.faults) {
      faults.delay({ messageMs: 2_500 }); // longer than a ping is waited for
      faults.dropSubscription();
    }
    await fixture.advance(3_000);
    for (const faults of here.faults) {
      faults.delay({});
    }
    await fixture.advance(10_000);
    expect(lease.signal.aborted).toBe(false);
    expect(await fixture.settleWithin(50, lease.release())).toBe(true);
  });
});

async function open(fixture: QuorumFixture, engine: string, id: string, seed: number): Promise<Clone> {
  const { clock } = fixture;
  const links = fixture.servers.map((server) => faulty(server.connect(), { clock }));
  const source = manualRandom(seed);
  let drawn = 0;
  const random = {
    id: () => ((drawn += 1) === 1 ? id : source.id()),
    nextFloat: () => source.nextFloat(),
  };
  const connections = links.map(({ connection }) => connection);
  const driver =
    engine === "one server"
      ? redis(connections[0] as Connection, { clock, random })
      : redlock(connections, { clock, random });
  const locks = createLocks(driver);
  await fixture
    .settleWithin(50, locks.acquire(`warm${seed}`))
    .then((lease) => fixture.settleWithin(50, lease.release()));
  await fixture.advance(50);
  return { locks, faults: links.map(({ controls }) => controls) };
}

function serialized({ key, fencingToken }: Lease) {
  return { version: 1, key, fencingToken: fencingToken.toString(), owner: "clone", ttlMs } as const;
}

function tokensIn(stored: ReturnType<FakeRedis["dump"]>): string[] {
  return JSON.stringify(stored ?? "").match(tokenForm) ?? [];
}
