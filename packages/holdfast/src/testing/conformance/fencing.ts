import assert from "node:assert/strict";

import type { Lease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import { contended, granted, later, type Cases } from "./fixture.ts";

export const fencing: Cases = {
  "fencing tokens rise from release to grant": async ({ here, there, key }) => {
    const tokens: bigint[] = [];
    for (let round = 0; round < 10; round += 1) {
      const lease = granted(await (round % 3 === 0 ? here : there).tryAcquire(key));
      tokens.push(lease.fencingToken);
      await lease.release();
    }
    assertRising(tokens);
  },

  "fencing tokens rise over an expiry": async ({ here, there, key }) => {
    const first = await here.acquire(key, { ttlMs: 150, renew: false });
    const second = await there.acquire(key);
    assertRising([first.fencingToken, second.fencingToken]);
  },

  "fencing tokens rise over a break": async ({ here, there, key }) => {
    const { fencingToken } = await here.acquire(key);
    await there.admin.breakLock(key, { fencingToken, reason: "test" });
    const second = await there.acquire(key);
    assertRising([fencingToken, second.fencingToken]);
  },

  "fencing tokens rise through hand-overs within a process, and between processes": async (fixture) => {
    const { key } = fixture;
    const processes = [
      fixture.open("here", { handover: { max: 3 } }),
      fixture.open("there", { handover: { max: 3 } }),
    ];
    const tokens: bigint[] = [];
    const callers = Array.from({ length: 40 }, (_, i) =>
      (processes[i % 2] ?? fixture.here).withLock(key, { waitMs: 30_000 }, ({ fencingToken }) =>
        tokens.push(fencingToken),
      ),
    );
    await Promise.all(callers);
    assert.equal(tokens.length, 40);
    assertRising(tokens);
  },

  "the holder's fencing token is current until its release, expiry or break, then stale": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here", { handover: false });
    const released = await here.acquire(key);
    await expectFenceState([here, there], key, released, "current");
    await released.release();
    await expectFenceState([here, there], key, released, "stale");
    const expired = await here.acquire(key, { ttlMs: 150, renew: false });
    // Nacos ends no grant, so each process sees the end at a time of its own
    await fixture.poll(
      () => Promise.all([here, there].map((locks) => locks.checkFence(key, expired.fencingToken))),
      (states) => states.every((state) => state === "stale"),
    );
    const broken = await here.acquire(key);
    await there.admin.breakLock(key, { fencingToken: broken.fencingToken, reason: "test" });
    await expectFenceState([there, here], key, broken, "stale");
    const last = await here.acquire(key);
    await expectFenceState([here, there], key, broken, "stale");
    await expectFenceState([here, there], key, last, "current");
  },

  "the lease of a lone caller is current for other processes too, and stale after its release": async ({
    here,
    there,
    key,
  }) => {
    const tried = granted(await here.tryAcquire(key));
    await expectFenceState([here, there], key, tried, "current");
    await tried.release();
    await expectFenceState([here, there], key, tried, "stale");
    const lease = await here.acquire(key);
    await expectFenceState([here, there], key, lease, "current");
    const waiting = later(here.acquire(key));
    await expectFenceState([here, there], key, lease, "current");
    await lease.release();
    await expectFenceState([here, there], key, lease, "stale");
    await (await waiting).release();
  },

  "a fencing token that no lease has is stale": async ({ there, key, open }) => {
    const here = open("here", { handover: false });
    assert.equal(await here.checkFence(key, 1n), "stale");
    const { fencingToken } = await here.acquire(key);
    const others = [1n, fencingToken - 1n, fencingToken + 1n, fencingToken + 1_000_000n];
    for (const other of others.filter((one) => one !== fencingToken && one > 0n)) {
      await expectFenceState([here, there], key, { fencingToken: other }, "stale");
    }
  },

  "a lease that was handed over in memory is never current, and its process knows the current one": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const first = await contended(here, key);
    const waiting = [later(here.acquire(key)), later(here.acquire(key))] as const;
    assert.equal(await here.checkFence(key, first.fencingToken), "current");
    await first.release();
    const second = await waiting[0];
    await expectFenceState([here], key, first, "stale");
    await expectFenceState([here], key, second, "current");
    assert.notEqual(await there.checkFence(key, first.fencingToken), "current");
    assert.notEqual(await there.checkFence(key, second.fencingToken), "stale");
    await second.extend();
    await expectFenceState([here, there], key, first, "stale");
    assert.notEqual(await there.checkFence(key, second.fencingToken), "stale");
    await second.release();
    const third = await waiting[1];
    assert.notEqual(await there.checkFence(key, second.fencingToken), "current");
    await expectFenceState([here], key, second, "stale");
    await expectFenceState([here], key, third, "current");
    await third.release();
    for (const lease of [first, second, third]) {
      await expectFenceState([here, there], key, lease, "stale");
    }
  },

  "only the last lease of a run of hand-overs is current, once its process has renewed it": async (
    fixture,
  ) => {
    const { there, key } = fixture;
    const here = fixture.open("here", { handover: { max: 1 } });
    const first = await contended(here, key);
    const waiting = later(here.acquire(key));
    await first.release();
    const second = await waiting;
    await second.extend();
    await expectFenceState([here, there], key, second, "current");
    await expectFenceState([here, there], key, first, "stale");
  },

  "the holder of a contended key is current for other processes too, without an extension of its own": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const first = await contended(here, key);
    const waiting = later(here.acquire(key, { waitMs: 30_000 }));
    const isCurrent = ({ fencingToken }: Lease): Promise<string> =>
      fixture.poll(
        () => there.checkFence(key, fencingToken),
        (state) => state === "current",
      );
    await isCurrent(first);
    await first.release(); // not in memory, because the engine knows no later number
    const second = await waiting;
    await expectFenceState([here, there], key, first, "stale");
    await isCurrent(second);
    await expectFenceState([here, there], key, second, "current");
    await second.release();
    await expectFenceState([here, there], key, second, "stale");
  },

  "the lease of a kept key is current until the key is free, because no other holder exists": async ({
    here,
    there,
    key,
  }) => {
    const lease = await here.acquire(key, { minHoldMs: 20_000, ttlMs: 30_000 });
    await lease.release();
    await expectFenceState([here, there], key, lease, "current");
    await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
    await expectFenceState([here, there], key, lease, "stale");
  },

  "an adopted lease is current for its process, and stale after its release": async (fixture) => {
    const { here, there, key } = fixture;
    const first = await here.acquire(key);
    const second = later(here.acquire(key));
    await first.release();
    const transferred = await second;
    const adopted = await there.adopt(transferred.transfer());
    await expectFenceState([there], key, adopted, "current");
    assert.notEqual(await here.checkFence(key, adopted.fencingToken), "stale");
    assert.notEqual(await here.checkFence(key, first.fencingToken), "current");
    await adopted.release();
    await expectFenceState([there, here], key, adopted, "stale");
  },

  "a lease is stale once the engine has ended it, even before its process notices": async ({
    here,
    there,
    key,
  }) => {
    const lease = await here.acquire(key);
    await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
    const next = await there.acquire(key);
    await expectFenceState([here, there], key, lease, "stale");
    await expectFenceState([there], key, next, "current");
  },

  "each key of a lease on several keys has its own current fencing token": async ({ here, there, key }) => {
    const lease = await here.all([`${key}:a`, `${key}:b`]).acquire();
    for (const [of, fencingToken] of lease.fencingTokens) {
      await expectFenceState([here], of, { fencingToken }, "current");
      assert.notEqual(await there.checkFence(of, fencingToken), "stale");
    }
    await lease.release();
    for (const [of, fencingToken] of lease.fencingTokens) {
      await expectFenceState([here, there], of, { fencingToken }, "stale");
    }
  },
};

function assertRising(tokens: readonly bigint[]): void {
  for (const [i, token] of tokens.entries()) {
    const previous = tokens[i - 1] ?? 0n;
    assert.ok(token > previous, `${token} was granted after ${previous}`);
  }
}

/** Asserts the state that `checkFence` returns to each process for a lease. */
export async function expectFenceState(
  processes: readonly Locks[],
  key: string,
  { fencingToken }: Pick<Lease, "fencingToken">,
  expected: Awaited<ReturnType<Locks["checkFence"]>>,
): Promise<void> {
  const states = await Promise.all(processes.map((locks) => locks.checkFence(key, fencingToken)));
  assert.deepEqual(
    states,
    processes.map(() => expected),
  );
}
