import { isLockError, type Lease } from "holdfast";
import { describe, expect, test } from "vitest";

import {
  clock,
  endMs,
  engine,
  lost,
  onManualClock,
  open,
  openCounted,
  settled,
  ttlMs,
  unreachable,
} from "../support/lease-fixture.ts";

onManualClock();

async function held(...keys: string[]): Promise<boolean[]> {
  const states = await Promise.all(keys.map((key) => engine.inspect(key)));
  return states.map(({ holders }) => holders.length > 0);
}

describe("a caller that waits for several keys", () => {
  test("holds its acquired keys, and releases them at its timeout", async () => {
    const other = await open().acquire("b", { ttlMs: 60_000 });
    const controller = new AbortController();
    const waiting = open().all(["b", "a"], { ttlMs }).acquire({ signal: controller.signal });
    await clock.advance(3 * ttlMs);
    expect(await settled(waiting)).toBe("pending");
    expect(await held("a", "b")).toEqual([true, true]);
    controller.abort("enough");
    await expect(waiting).rejects.toBe("enough");
    expect(await held("a")).toEqual([false]);
    await other.release();
    expect(await held("a", "b")).toEqual([false, false]);
  });

  test("gets the held key and the total wait in its error", async () => {
    await open().acquire("a", { ttlMs: 400, renew: false });
    await open().acquire("b", { ttlMs: 60_000, reason: "report" });
    const waiting = settledAt(open().all(["a", "b"], { ttlMs }).acquire({ waitMs: 1_000 }));
    await clock.advance(1_000);
    const { error, at } = await waiting;
    expect(error).toMatchObject({ code: "wait-timeout", key: "b", holder: { reason: "report" } });
    expect((error as Error).message).toContain("1000");
    expect(at).toBe(clock.now());
    expect(await held("a")).toEqual([false]);
  });

  test("with waitMs 0 sends one request for each key, and holds nothing", async () => {
    await open().acquire("b", { ttlMs });
    const { locks, acquire } = openCounted();
    const error = await settled(locks.all(["a", "b"]).acquire({ waitMs: 0 }));
    expect(acquire).toHaveBeenCalledTimes(2);
    expect(error).toMatchObject({ code: "wait-timeout", key: "b" });
    expect(await held("a")).toEqual([false]);
  });

  test("sends no further request if the first was unanswered until its deadline", async () => {
    const requests: string[] = [];
    const locks = open({
      acquire: (request) => {
        if (request.deadline === null) {
          return { result: unanswered(), cancel: () => undefined };
        }
        requests.push(request.key);
        return engine.acquire(request);
      },
    });
    const late = settledAt(locks.all(["a", "b"], { ttlMs }).acquire({ waitMs: 200 }));
    await clock.advance(2_000);
    expect((await late).error).toBe(unreachable);
    expect(requests).toEqual([]);
    const inTime = locks.all(["a", "b"], { ttlMs }).acquire({ waitMs: 5_000 });
    await clock.advance(2_000);
    expect(await (await inTime).release()).toBe(true);
    expect(requests).toEqual(["a", "b"]);
  });

  test("re-acquires a key that it lost while it waited for another", async () => {
    const other = await open().acquire("b", { ttlMs: 60_000 });
    const waiting = open().all(["a", "b"], { ttlMs }).acquire();
    await clock.advance(10);
    const fencingToken = (await engine.inspect("a")).holders[0]?.fencingToken as bigint;
    await open().admin.breakLock("a", { fencingToken, reason: "test" });
    expect(await held("a")).toEqual([false]);
    await other.release();
    const lease = (await settled(waiting)) as Lease;
    expect(lease.fencingTokens.get("a")).toBeGreaterThan(fencingToken);
    expect(await held("a", "b")).toEqual([true, true]);
    lease.throwIfLost();
  });

  test("holds nothing after its Locks is closed", async () => {
    const other = await open().acquire("b", { ttlMs });
    const locks = open();
    const waiting = locks.all(["a", "b"], { ttlMs }).acquire();
    await clock.advance(10);
    const closing = locks.close();
    expect(await settled(waiting)).toMatchObject({ code: "closed" });
    await closing;
    expect(await held("a")).toEqual([false]);
    await other.release();
  });

  test("starts maxHoldMs when it holds all keys", async () => {
    const other = await open().acquire("b", { ttlMs: 60_000 });
    const waiting = open().all(["a", "b"], { ttlMs }).acquire({ maxHoldMs: 5_000, waitMs: 60_000 });
    await clock.advance(4_000);
    await other.release();
    const lease = (await settled(waiting)) as Lease;
    const { signal } = lease;
    await clock.advance(4_999);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.reason).toEqual(lost("max-hold"));
  });
});

describe("one lease of several keys", () => {
  test("is lost with any of its keys; the other keys are no longer renewed, and a release frees them", async () => {
    const lease = await open().all(["a", "b", "c"], { ttlMs }).acquire();
    const { signal } = lease;
    const fencingToken = lease.fencingTokens.get("b") as bigint;
    await open().admin.breakLock("b", { fencingToken, reason: "test" });
    expect([signal.aborted, lease.remainingMs()]).toEqual([true, 0]);
    expect(signal.reason).toEqual(lost("broken"));
    expect(() => {
      lease.throwIfLost();
    }).toThrow(lost("broken"));
    await expect(lease.extend()).rejects.toEqual(lost("broken"));
    expect(await held("a", "b", "c")).toEqual([true, false, true]);
    expect(await lease.release()).toBe(false);
    expect(await held("a", "b", "c")).toEqual([false, false, false]);
  });

  test("expires if it is lost and not released", async () => {
    const lease = await open().all(["a", "b"], { ttlMs }).acquire();
    await open().admin.breakLock("b", {
      fencingToken: lease.fencingTokens.get("b") as bigint,
      reason: "test",
    });
    await clock.advance(ttlMs);
    expect(await held("a", "b")).toEqual([false, false]);
  });

  test("is lost by a blocked event loop before any timer ran", async () => {
    const lease = await open().all(["a", "b"], { ttlMs }).acquire();
    clock.block(endMs);
    expect(() => {
      lease.throwIfLost();
    }).toThrow(lost("expired"));
    expect(lease.signal.aborted).toBe(true);
  });

  test("with ifLost continue is not aborted, and its work is not rejected", async () => {
    const value = await open()
      .all(["a", "b"], { ttlMs, ifLost: "continue" })
      .withLock(async (lease) => {
        const { signal } = lease;
        await open().admin.breakLock("b", {
          fencingToken: lease.fencingTokens.get("b") as bigint,
          reason: "test",
        });
        expect([signal.aborted, lease.remainingMs()]).toEqual([false, 0]);
        return "done";
      });
    expect(value).toBe("done");
  });

  test("with renew false lasts for one TTL from its last grant", async () => {
    const other = await open().acquire("b", { ttlMs: 60_000 });
    const waiting = open().all(["a", "b"], { ttlMs, renew: false }).acquire({ waitMs: 60_000 });
    await clock.advance(5 * ttlMs);
    await other.release();
    const lease = (await settled(waiting)) as Lease;
    expect(lease.remainingMs()).toBe(endMs);
    await clock.advance(endMs);
    expect(lease.remainingMs()).toBe(0);
    await clock.advance(ttlMs - endMs);
    expect(await held("a", "b")).toEqual([false, false]);
  });

  test("is released with the reason if the first extension fails", async () => {
    const locks = open({ extend: async () => ({ outcome: "unknown", error: unreachable }) });
    const other = await open().acquire("b", { ttlMs: 60_000 });
    const waiting = locks.all(["a", "b"], { ttlMs, renew: false }).acquire();
    expect(await settled(waiting)).toBe("pending");
    await other.release();
    expect(await settled(waiting)).toBe(unreachable);
    expect(await held("a", "b")).toEqual([false, false]);
  });

  test("cannot be transferred", async () => {
    const lease = await open().all(["b", "a"], { ttlMs }).acquire();
    expect(() => lease.transfer()).toThrow("A lease of several keys cannot be transferred");
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(JSON.parse(JSON.stringify(lease))).toMatchObject({
      key: "a",
      keys: ["a", "b"],
      fencingToken: String(lease.fencingToken),
    });
  });

  test("expires with all keys if it is orphaned", async () => {
    const lease = await open().all(["a", "b"], { ttlMs }).acquire();
    lease.orphan();
    await clock.advance(ttlMs - 1);
    expect(await held("a", "b")).toEqual([true, true]);
    await clock.advance(1);
    expect(await held("a", "b")).toEqual([false, false]);
  });

  test("tries to release every key, and rejects if the engine is unreachable", async () => {
    const requests: string[] = [];
    const locks = open({
      release: async (key, token, until) => {
        requests.push(key);
        return key === "a" ? Promise.reject(unreachable) : engine.release(key, token, until);
      },
    });
    const lease = await locks.all(["a", "b"], { ttlMs }).acquire();
    await expect(lease.release()).rejects.toBe(unreachable);
    expect(requests).toEqual(["a", "b"]);
    expect(await held("b")).toEqual([false]);
  });
});

describe("a try for several keys", () => {
  test("releases its granted keys if it fails, and their waiters are granted", async () => {
    await open().acquire("b", { ttlMs });
    expect(await open().all(["c", "b", "a"]).tryAcquire()).toBeNull();
    expect(await held("a", "b", "c")).toEqual([false, true, false]);
  });

  test("reports a failed request, and releases its granted keys", async () => {
    const locks = open({
      acquire: (request) =>
        request.key === "b"
          ? { result: Promise.reject(unreachable), cancel: () => undefined }
          : engine.acquire(request),
    });
    await expect(locks.all(["a", "b", "c"]).tryAcquire()).rejects.toBe(unreachable);
    expect(await held("a", "c")).toEqual([false, false]);
  });
});

test("a lock of one of the keys inside the work is refused, because it would wait for itself", async () => {
  const locks = open();
  await locks.all(["a", "b"], { ttlMs }).withLock(async () => {
    expect(await settled(locks.acquire("b"))).toMatchObject({ code: "self-deadlock", key: "b" });
    expect(await settled(locks.all(["c", "b"]).acquire())).toMatchObject({ code: "self-deadlock", key: "b" });
    expect(await settled(locks.all(["c", "b"]).tryAcquire())).toMatchObject({
      code: "self-deadlock",
      key: "b",
    });
    expect(await held("c")).toEqual([false]);
  });
});

test("accepts 1 to 64 different keys, and checks each", () => {
  const locks = open();
  const many = Array.from({ length: 65 }, (_, index) => `k${index}`);
  expect(() => locks.all([])).toThrow(
    expect.objectContaining({
      code: "invalid-key",
      message: "`keys` has 0 different keys; one lease has 1 to 64",
    }),
  );
  expect(() => locks.all(many)).toThrow(
    expect.objectContaining({
      code: "invalid-key",
      message: "`keys` has 65 different keys; one lease has 1 to 64",
    }),
  );
  expect(() => locks.all([...many.slice(1), "k1"])).not.toThrow();
  expect(() => locks.all("ab" as never)).toThrow(TypeError);
  expect(() => locks.all(["a", ""])).toThrow(expect.objectContaining({ code: "invalid-key" }));
  expect(() => locks.all(["a"], { attemptId: "x" })).toThrow(TypeError);
});

async function unanswered(): Promise<never> {
  await new Promise<void>((resolve) => clock.setTimer(resolve, 2_000, true));
  throw unreachable;
}

async function settledAt(promise: Promise<unknown>): Promise<{ error: unknown; at: number }> {
  try {
    await promise;
    throw new Error("expected a rejection");
  } catch (error) {
    expect(isLockError(error)).toBe(true);
    return { error, at: clock.now() };
  }
}
