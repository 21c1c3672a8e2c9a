import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import type { Lease, Locks } from "holdfast";
import { expect, test, vi } from "vitest";

import { clock, onManualClock, open, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

// Leaked leases.

const collectGarbage = globalThis.gc as () => void;

/** Advances through renewals, with a garbage collection before each. From its first renewal on, a lease is only weakly referenced. */
async function renewAndCollect(renewals: number): Promise<void> {
  for (let renewal = 0; renewal < renewals; renewal += 1) {
    for (let turn = 0; turn < 3; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    await clock.advance(ttlMs / 3);
  }
}

async function listening(during: (warnings: unknown[], leaks: unknown[]) => Promise<void>): Promise<void> {
  const leaks: unknown[] = [];
  const onLeak = (message: unknown): void => void leaks.push(message);
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  subscribe("holdfast:leaked", onLeak);
  try {
    await during(emitWarning.mock.calls, leaks);
  } finally {
    emitWarning.mockRestore();
    unsubscribe("holdfast:leaked", onLeak);
  }
}

test("a leaked lease is reported, is no longer renewed, and expires", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const forget = async (): Promise<bigint> => (await locks.acquire("k", { ttlMs })).fencingToken;
    const fencingToken = await forget();
    await renewAndCollect(2);
    expect(leaks).toMatchObject([{ key: "k", fencingToken }]);
    expect(warnings).toEqual([[expect.stringContaining('"k"'), { code: "HOLDFAST_LEAKED_LEASE" }]]);
    await clock.advance(ttlMs);
    expect(await open().tryAcquire("k")).not.toBeNull();
  });
});

test("a lease with a referenced signal does not leak", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const keep = async (): Promise<AbortSignal> => (await locks.acquire("k", { ttlMs })).signal;
    const signal = await keep();
    await renewAndCollect(5);
    expect([leaks, warnings, signal.aborted]).toEqual([[], [], false]);
    expect(await open().tryAcquire("k")).toBeNull();
  });
});

const kinds: Record<string, (locks: Locks) => Promise<Lease>> = {
  "a lease": (locks) => locks.acquire("k", { ttlMs, maxHoldMs: 10 * ttlMs }),
  "a lease of several keys": (locks) => locks.all(["k", "l"]).acquire({ ttlMs, maxHoldMs: 10 * ttlMs }),
  "a lease that repeats of an attempt share": (locks) =>
    locks.acquire("k", { ttlMs, maxHoldMs: 10 * ttlMs, attemptId: "a" }),
};

test.for(Object.entries(kinds))(
  "%s renews for a caller that waits for the signal alone",
  async ([, acquire]) => {
    const locks = open();
    await listening(async (warnings, leaks) => {
      let lostAt: number | undefined;
      const work = async (): Promise<void> => {
        const lease = await acquire(locks);
        await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
        lostAt = lease.validUntil;
      };
      void work();
      await renewAndCollect(9);
      expect([leaks, warnings, lostAt]).toEqual([[], [], undefined]);
      expect(await open().tryAcquire("k")).toBeNull();
      await clock.advance(10 * ttlMs);
      expect(lostAt).toBeGreaterThan(0);
    });
  },
);

test.for(Object.entries(kinds))("%s without a reference is reported", async ([, acquire]) => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const forget = async (): Promise<void> => void (await acquire(locks));
    await forget();
    await renewAndCollect(3);
    expect(leaks).toContainEqual(expect.objectContaining({ key: "k", kind: "mutex" }));
    expect(warnings).toHaveLength(leaks.length);
    await clock.advance(ttlMs);
    expect(await open().tryAcquire("k")).not.toBeNull();
  });
});

test("a lease of a running withLock does not leak, even if the work does not use it", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    let finish = (): void => undefined;
    const done = locks.withLock("k", { ttlMs }, () => new Promise<void>((resolve) => (finish = resolve)));
    await renewAndCollect(5);
    expect([leaks, warnings]).toEqual([[], []]);
    finish();
    await done;
  });
});

test("a released or unrenewed lease is not reported as leaked", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const use = async (): Promise<void> => {
      await (await locks.acquire("a", { ttlMs })).release();
      (await locks.acquire("b", { ttlMs })).orphan();
    };
    await use();
    await renewAndCollect(5);
    expect([leaks, warnings]).toEqual([[], []]);
  });
});

// Leases and the life of the process.

test("a held lease does not keep its process alive", async () => {
  const program = fileURLToPath(new URL("../support/holds-and-ends.mjs", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const said: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const tooLong = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  clearTimeout(tooLong);
  expect([said.join(""), code, signal]).toEqual(["held\n", 0, null]);
});
