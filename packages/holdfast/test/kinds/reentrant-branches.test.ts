import type { LeaseLostError } from "holdfast";
import { describe, expect, test } from "vitest";

import { clock, engine, lost, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

const isFree = async (): Promise<boolean> => {
  const state = await engine.inspect("k");
  return state.holders.length === 0;
};

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

describe("branches of one work", () => {
  test("enter one after another, in order, and do not wait for the outer work", async () => {
    const own = open().reentrant("k", { ttlMs });
    const seen: string[] = [];
    const done = own.withLock(async () => {
      await Promise.all(
        ["a", "b", "c"].map((name) =>
          own.withLock(async () => {
            seen.push(`${name} begins`);
            await pause(10);
            seen.push(`${name} ends`);
          }),
        ),
      );
    });
    await clock.advance(30);
    await done;
    expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  test("a try is refused while another branch works, and a branch that waits too long times out with the key", async () => {
    const own = open().reentrant("k", { ttlMs });
    const done = own.withLock(async () => {
      const first = own.withLock({ reason: "first" }, () => pause(100));
      expect(await own.tryAcquire()).toBeNull();
      expect(await own.tryWithLock(() => 1)).toMatchObject({ ran: false });
      const late = own.acquire({ waitMs: 50 }).catch((error: unknown) => error);
      const now = own.acquire({ waitMs: 0 }).catch((error: unknown) => error);
      await first;
      return [await late, await now];
    });
    await clock.advance(100);
    expect(await done).toMatchObject([
      { code: "wait-timeout", key: "k" },
      { code: "wait-timeout", key: "k" },
    ]);
  });

  test("after a loss every waiting branch is refused", async () => {
    const own = open().reentrant("k", { ttlMs });
    const done = own.withLock(async ({ fencingToken }) => {
      const first = own.withLock(() => pause(10));
      const others = [own.acquire(), own.acquire()];
      const branches = Promise.allSettled([first, ...others]);
      await open().admin.breakLock("k", { fencingToken, reason: "test" });
      return branches;
    });
    const ended = done.catch((error: unknown) => (error as LeaseLostError).result);
    await clock.advance(20);
    const refused = { status: "rejected", reason: lost("broken") };
    expect(await settled(ended)).toEqual([refused, refused, refused]);
  });

  test("an aborted waiting branch gives its turn to the next", async () => {
    const own = open().reentrant("k", { ttlMs });
    const controller = new AbortController();
    const seen: string[] = [];
    const done = own.withLock(async () => {
      const first = own.withLock(() => pause(100));
      const second = own.withLock({ signal: controller.signal }, () => seen.push("second"));
      const third = own.withLock(() => seen.push("third"));
      controller.abort("enough");
      await expect(second).rejects.toBe("enough");
      await Promise.all([first, third]);
    });
    await clock.advance(100);
    await done;
    expect(seen).toEqual(["third"]);
    expect(await isFree()).toBe(true);
  });

  test("a branch that outlives the work holds the lock until the branch ends", async () => {
    const own = open().reentrant("k", { ttlMs });
    let branch: Promise<void> = Promise.resolve();
    await own.withLock(() => {
      branch = own.withLock(() => pause(100));
      return undefined;
    });
    expect(await isFree()).toBe(false);
    await clock.advance(100);
    await branch;
    expect(await isFree()).toBe(true);
  });

  test("a branch whose turn comes after the work has ended is refused", async () => {
    const own = open().reentrant("k", { ttlMs });
    const branches: Promise<unknown>[] = [];
    await own.withLock(() => {
      branches.push(own.withLock(() => pause(100)));
      branches.push(own.withLock(() => "too late").catch((error: unknown) => error));
    });
    await clock.advance(100);
    expect(await Promise.all(branches)).toEqual([undefined, lost("released")]);
    expect(await isFree()).toBe(true);
  });

  test("the error of a branch is its own, and the lock stays with the work", async () => {
    const own = open().reentrant("k", { ttlMs });
    const failure = new Error("of the branch");
    await own.withLock(async (lease) => {
      await expect(own.withLock(() => Promise.reject(failure))).rejects.toBe(failure);
      lease.throwIfLost();
      expect(await isFree()).toBe(false);
      await own.withLock(() => undefined);
    });
    expect(await isFree()).toBe(true);
  });
});
