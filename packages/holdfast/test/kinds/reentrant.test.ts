import { isLockError, LockError, type Lease } from "holdfast";
import { describe, expect, test, vi } from "vitest";

import {
  clock,
  endMs,
  engine,
  lost,
  onManualClock,
  open,
  settled,
  ttlMs,
  unreachable,
} from "../support/lease-fixture.ts";

onManualClock();

const sessions = 10_000;

const isFree = async (): Promise<boolean> => {
  const state = await engine.inspect("k");
  return state.holders.length === 0;
};

describe("the leases of one reentrant hold", () => {
  test("are released in any order; the last one frees the lock", async () => {
    const own = open().reentrant("k", { session: "s" });
    const [first, second, third] = [await own.acquire(), await own.acquire(), await own.acquire()];
    expect(await first.release()).toBe(true);
    expect(await third.release()).toBe(true);
    second.throwIfLost();
    expect(await isFree()).toBe(false);
    expect(await second.release()).toBe(true);
    expect(await isFree()).toBe(true);
  });

  test("a repeated release returns the first result, and ends no other lease", async () => {
    const own = open().reentrant("k", { session: "s" });
    const [first, second] = [await own.acquire(), await own.acquire()];
    expect([await first.release(), await first.release(), await first.release()]).toEqual([true, true, true]);
    expect([first.remainingMs(), second.remainingMs() > 0]).toEqual([0, true]);
    expect(() => {
      first.throwIfLost();
    }).toThrow(lost("released"));
    expect(await isFree()).toBe(false);
    await second.release();
    expect(await isFree()).toBe(true);
    expect(await first.release()).toBe(true);
  });

  test("only the release of the last lease rejects if the engine is unreachable", async () => {
    const own = open({ release: () => Promise.reject(unreachable) }).reentrant("k", { session: "s" });
    const [first, second] = [await own.acquire(), await own.acquire()];
    expect(await first.release()).toBe(true);
    await expect(second.release()).rejects.toBe(unreachable);
    await clock.advance(31_000);
  });

  test("a loss reaches every lease, and the outer and inner works", async () => {
    const locks = open();
    const own = locks.reentrant("k", { ttlMs });
    const signals: AbortSignal[] = [];
    const inner: unknown[] = [];
    const outer = own.withLock(async (around) => {
      signals.push(around.signal);
      const loose = await own.acquire();
      signals.push(loose.signal);
      inner.push(
        await own
          .withLock(async (inside) => {
            signals.push(inside.signal);
            await open().admin.breakLock("k", { fencingToken: inside.fencingToken, reason: "test" });
            return "inside";
          })
          .catch((error: unknown) => error),
      );
      await expect(own.acquire()).rejects.toEqual(lost("broken"));
      expect(await loose.release()).toBe(false);
      return "around";
    });
    await expect(outer).rejects.toMatchObject({ code: "lease-lost", reason: "broken", result: "around" });
    expect(inner).toMatchObject([{ code: "lease-lost", reason: "broken", result: "inside" }]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  test("a loss does not abort the signal of a released lease", async () => {
    const own = open().reentrant("k", { session: "s", ttlMs });
    const [first, second] = [await own.acquire(), await own.acquire()];
    const signals = [first.signal, second.signal];
    await first.release();
    await open().admin.breakLock("k", { fencingToken: second.fencingToken, reason: "test" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test("after a loss the session waits for the new holder like any caller", async () => {
    const locks = open();
    const own = locks.reentrant("k", { session: "s", ttlMs });
    const broken = await own.acquire();
    await open().admin.breakLock("k", { fencingToken: broken.fencingToken, reason: "test" });
    const other = await open().acquire("k", { ttlMs });
    const again = own.acquire();
    expect(await settled(again)).toBe("pending");
    await other.release();
    const lease = (await settled(again)) as Lease;
    expect(lease.fencingToken).toBeGreaterThan(other.fencingToken);
    expect(await broken.release()).toBe(false);
    lease.throwIfLost();
    expect(await lease.release()).toBe(true);
  });

  test("the late reply to a renewal does not revive a lease that its session has found expired", async () => {
    let answered = (): void => undefined;
    const own = open({
      extend: async (request) => {
        const extension = await engine.extend(request);
        await new Promise<void>((resolve) => (answered = resolve));
        return extension;
      },
    }).reentrant("k", { session: "s", ttlMs });
    const expired = await own.acquire();
    await clock.advance(ttlMs / 3);
    clock.block(endMs - ttlMs / 3 + 100); // after the end, before any timer; by the reply 900 ms remain
    const again = own.acquire();
    answered();
    await new Promise((resolve) => setImmediate(resolve));
    expect(expired.remainingMs()).toBe(0);
    expect(await expired.release()).toBe(false);
    const lease = (await settled(again)) as Lease;
    expect(lease.fencingToken).toBeGreaterThan(expired.fencingToken);
    lease.throwIfLost();
    expect(await lease.release()).toBe(true);
  });

  test("only the last lease of a hold can be transferred", async () => {
    const own = open().reentrant("k", { session: "s", ttlMs });
    const [first, second] = [await own.acquire(), await own.acquire()];
    expect(() => second.transfer()).toThrow(
      '"k" is held 2 times in this process; release the other leases before a transfer',
    );
    await first.release();
    expect(() => first.transfer()).toThrow(lost("released"));
    const adopted = await open().adopt(second.transfer());
    expect([second.remainingMs(), await second.release()]).toEqual([0, false]);
    expect(await settled(own.tryAcquire())).toBeNull();
    expect(await adopted.release()).toBe(true);
    expect(await (await own.tryAcquire())?.release()).toBe(true);
  });
});

describe("the caller", () => {
  test("is identified by the innermost withLock of the same Locks, and other callers wait", async () => {
    const [here, there] = [open(), open()];
    await here.reentrant("k", { ttlMs }).withLock(async () => {
      expect(await there.reentrant("k").tryAcquire()).toBeNull();
      expect(await settled(here.acquire("k"))).toMatchObject({ code: "self-deadlock" });
      await here.reentrant("other").withLock(async () => {
        expect(await here.reentrant("k").tryWithLock(() => "in")).toEqual({ ran: true, value: "in" });
      });
    });
    await here.withLock("k", { ttlMs }, async () => {
      expect(await settled(here.reentrant("k").acquire())).toMatchObject({ code: "self-deadlock" });
    });
  });

  test("is refused if another session is requested inside its work, because the work would wait for itself", async () => {
    const locks = open();
    await locks.reentrant("k", { ttlMs, session: "a" }).withLock(async () => {
      const other = locks.reentrant("k", { session: "b" });
      expect(await settled(other.acquire())).toMatchObject({ code: "self-deadlock" });
      expect(await locks.reentrant("k", { session: "a" }).tryWithLock(() => 1)).toMatchObject({ ran: true });
      expect(await locks.reentrant("k").tryWithLock(() => 1)).toMatchObject({ ran: true });
    });
  });

  test("is a new holder after its work has released the lease", async () => {
    const own = open().reentrant("k", { ttlMs });
    await own.withLock(async (lease) => {
      await lease.release();
      const again = await own.acquire();
      expect(again.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(await again.release()).toBe(true);
    });
    expect(await isFree()).toBe(true);
  });

  test("is not identified by its owner option", async () => {
    const own = open().reentrant("k", { ttlMs, owner: "me" });
    const lease = await own.acquire();
    expect(await own.tryAcquire()).toBeNull();
    await lease.release();
  });

  test("shares one request with callers of its session, and waits until its own deadline", async () => {
    const locks = open();
    const other = await open().acquire("k", { ttlMs });
    const own = locks.reentrant("k", { session: "s", ttlMs });
    const waits = [own.acquire(), own.acquire()];
    const short = own.acquire({ waitMs: 100 });
    expect(await settled(own.tryAcquire())).toBeNull();
    expect((await locks.inspect("k")).waiterCount).toBe(1);
    await clock.advance(100);
    expect(isLockError(await settled(short), "wait-timeout")).toBe(true);
    await other.release();
    const leases = (await Promise.all(waits)) as Lease[];
    expect(leases[0]?.fencingToken).toBe(leases[1]?.fencingToken);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await isFree()).toBe(true);
  });

  test("is requested for itself after the first caller of its session aborts", async () => {
    const locks = open();
    const other = await open().acquire("k", { ttlMs });
    const own = locks.reentrant("k", { session: "s", ttlMs });
    const controller = new AbortController();
    const [first, second] = [own.acquire({ signal: controller.signal }), own.acquire()];
    expect(await settled(first)).toBe("pending");
    controller.abort("enough");
    await expect(first).rejects.toBe("enough");
    await other.release();
    expect(await settled(second)).toMatchObject({ key: "k" });
  });
});

test("close() rejects waiting callers and releases held leases", async () => {
  const locks = open();
  const own = locks.reentrant("k", { session: "s", ttlMs });
  const lease = await own.acquire();
  const { signal } = lease;
  const busy = open();
  const other = await busy.acquire("other", { ttlMs });
  const blocked = locks.reentrant("other", { session: "s" });
  const waits = [blocked.acquire(), blocked.acquire()];
  expect(await settled(Promise.race(waits))).toBe("pending");
  const closing = locks.close();
  const outcomes: unknown[] = [];
  for (const wait of waits) {
    outcomes.push(await settled(wait));
  }
  expect(outcomes).toMatchObject([{ code: "closed" }, { code: "closed" }]);
  await closing;
  expect(signal.reason).toEqual(lost("released"));
  expect(await settled(own.acquire())).toMatchObject({ code: "closed" });
  await other.release();
});

test("a session with leaked leases is reported, expires, and can acquire again", async () => {
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  try {
    const own = open().reentrant("k", { session: "s", ttlMs });
    const forget = async (): Promise<void> => {
      const [first] = [await own.acquire(), await own.acquire()];
      await first?.release();
    };
    await forget();
    for (let renewal = 0; renewal < 3; renewal += 1) {
      for (let turn = 0; turn < 3; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        (globalThis.gc as () => void)();
      }
      await clock.advance(ttlMs / 3);
    }
    expect(emitWarning.mock.calls).toEqual([
      [expect.stringContaining('"k"'), { code: "HOLDFAST_LEAKED_LEASE" }],
    ]);
    await clock.advance(ttlMs);
    expect(await isFree()).toBe(true);
    expect(await (await own.acquire()).release()).toBe(true);
  } finally {
    emitWarning.mockRestore();
  }
});

test("sessions that ended without a release stay in no map", async () => {
  const [locks, other] = [open(), open()];
  const useAndTransfer = async (from: number): Promise<number> => {
    for (let session = from; session < from + sessions; session += 1) {
      const lease = await locks.reentrant(`k${session % 50}`, { session: `s${session}`, ttlMs }).acquire();
      lease.transfer();
      const state = await engine.inspect(lease.key);
      await other.admin.breakLock(lease.key, { fencingToken: state.fencingToken as bigint, reason: "test" });
    }
    await clock.advance(ttlMs);
    (globalThis.gc as () => void)();
    return process.memoryUsage().heapUsed;
  };
  const before = await useAndTransfer(0);
  expect((await useAndTransfer(sessions)) - before).toBeLessThan(200 * sessions);
});

test("invalid options are refused before a request is sent", () => {
  const locks = open();
  const expected = "Expected `session` to be a string of 1 to 512 bytes of well-formed UTF-8";
  expect(() => locks.reentrant("k", { session: "" })).toThrow(new RangeError(`${expected}, got "" (string)`));
  expect(() => locks.reentrant("k").acquire({ session: 7 as never })).toThrow(
    new TypeError(`${expected}, got 7 (number)`),
  );
  expect(() => locks.reentrant("k", { attemptId: "x" })).toThrow(TypeError);
  expect(() => locks.reentrant("k").tryAcquire({ waitMs: 1 } as never)).toThrow(/Unknown option `waitMs`/);
  expect(() => locks.reentrant("")).toThrow(LockError);
});
