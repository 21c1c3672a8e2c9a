import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import {
  createLocks,
  isLockError,
  LeaseLostError,
  type Lease,
  type Locks,
  type LocksOptions,
} from "holdfast";
import { memory } from "holdfast/memory";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Driver, Extension } from "../src/driver.ts";
import { EngineError } from "../src/errors.ts";
import { altered } from "./support/altered-driver.ts";

const ttlMs = 3_000;
/** 3 000 ms less the drift of 32 ms. */
const endMs = 2_968;
const unreachable = new EngineError("the engine is away", { outcome: "unknown", retryable: true });

let clock: ManualClock;
let engine: Driver;
let opened: Locks[];

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  engine = memory({ clock, random: manualRandom(1) });
  opened = [];
});

afterEach(async () => {
  const closing = Promise.all(opened.map((locks) => locks.close()));
  await clock.advance(5_000);
  await closing;
  await engine.close();
  expect(clock.timers()).toBe(0);
});

/** One process at the engine, some of whose calls are answered otherwise. */
function open(changes: Partial<Driver> = {}, options?: LocksOptions): Locks {
  const locks = createLocks(altered(engine, { close: async () => undefined, ...changes }), options);
  opened.push(locks);
  return locks;
}

/** What a promise has come to by now, without waiting for it. */
async function settled(promise: Promise<unknown>): Promise<unknown> {
  let result: unknown = "pending";
  promise.then(
    (value) => (result = value),
    (error: unknown) => (result = error),
  );
  await clock.advance(0);
  return result;
}

function lost(reason: string): unknown {
  return expect.toSatisfy((error: unknown) => isLockError(error, "lease-lost") && hasReason(error, reason));
}

function hasReason(error: unknown, reason: string): boolean {
  return (error as LeaseLostError).reason === reason;
}

// Loss.

test("with the event loop blocked past the TTL throwIfLost throws at once, before any timer ran", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.block(endMs - 1);
  expect(() => {
    lease.throwIfLost();
  }).not.toThrow();
  clock.block(1);
  expect(lease.remainingMs()).toBe(0);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("expired"));
});

test("an end that the wall clock shows a moment before the monotonic one is no suspension", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.jumpWall(1);
  clock.block(endMs - 1);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("expired"));
});

test("a signal that is asked for after the end is aborted already", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.block(endMs);
  expect(lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toEqual(lost("expired"));
});

test("after a suspension throwIfLost throws at once, and the signal aborts within a second", async () => {
  const locks = open();
  const [checked, listened] = await Promise.all(["a", "b"].map((key) => locks.acquire(key, { ttlMs })));
  const signal = (listened as Lease).signal;
  clock.sleep(endMs);
  expect(checked?.remainingMs()).toBe(0);
  expect(() => checked?.throwIfLost()).toThrow(lost("suspended"));
  expect(signal.aborted).toBe(false);
  await clock.advance(1_000);
  expect(signal.reason).toEqual(lost("suspended"));
});

test("a lease whose renewals are not answered aborts its signal at the end of its validity", async () => {
  const lease = await open({ extend: () => new Promise(() => undefined) }).acquire("k", { ttlMs });
  const until = lease.validUntil;
  const { signal } = lease;
  await clock.advance(endMs - 1);
  expect([clock.now(), until, signal.aborted, lease.remainingMs()]).toEqual([endMs - 1, endMs, false, 1]);
  await clock.advance(1);
  expect(signal.reason).toEqual(lost("engine-unreachable"));
});

test("one failing renewal loses nothing", async () => {
  let calls = 0;
  const extend: Driver["extend"] = async (request): Promise<Extension> =>
    ++calls === 1 ? { outcome: "unknown", error: unreachable } : engine.extend(request);
  const lease = await open({ extend }).acquire("k", { ttlMs });
  await clock.advance(2 * ttlMs);
  expect(calls).toBeGreaterThan(2);
  expect([lease.signal.aborted, lease.remainingMs() > 0]).toEqual([false, true]);
});

test("a loss that the engine tells aborts at once, and release answers false", async () => {
  const lease = await open({ extend: async () => ({ outcome: "lost", reason: "stolen" }) }).acquire("k", {
    ttlMs,
  });
  const { signal } = lease;
  await clock.advance(ttlMs / 3);
  expect(signal.reason).toEqual(lost("stolen"));
  expect([lease.remainingMs(), await lease.release(), await lease.release()]).toEqual([0, false, false]);
});

test("at maxHoldMs a lease is lost, however well it was renewed", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 10_000 });
  const { signal } = lease;
  await clock.advance(9_999);
  expect([signal.aborted, lease.remainingMs()]).toEqual([false, 1]);
  await clock.advance(1);
  expect(signal.reason).toEqual(lost("max-hold"));
  expect(lease.remainingMs()).toBe(0);
});

test("maxHoldMs is found by throwIfLost before any timer ran", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 1_000 });
  clock.block(1_000);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("max-hold"));
});

test("validUntil is never after the end that maxHoldMs sets", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 1_000 });
  expect(lease.validUntil - clock.now()).toBe(lease.remainingMs());
});

test("ifLost continue: the signal is not aborted, and who asks is told the truth", async () => {
  const told: unknown[] = [];
  const listen = (message: unknown): void => void told.push(message);
  subscribe("holdfast:lost", listen);
  try {
    const extend = async (): Promise<Extension> => ({ outcome: "lost", reason: "stolen" });
    const lease = await open({ extend }).acquire("k", { ttlMs, ifLost: "continue" });
    const { signal } = lease;
    await clock.advance(ttlMs);
    expect([signal.aborted, lease.remainingMs()]).toEqual([false, 0]);
    expect(() => {
      lease.throwIfLost();
    }).toThrow(lost("stolen"));
    expect(told).toEqual([{ key: "k", reason: "stolen", fencingToken: lease.fencingToken }]);
  } finally {
    unsubscribe("holdfast:lost", listen);
  }
});

test("when a run of hand-overs is lost, its present holder is told", async () => {
  const locks = open({ extend: async () => ({ outcome: "lost", reason: "stolen" }) });
  const first = await locks.acquire("k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  await first.release();
  const second = await next;
  expect(second.fencingToken).toBe(first.fencingToken + 1n);
  const { signal } = second;
  await clock.advance(endMs);
  expect(signal.reason).toEqual(lost("stolen"));
  expect(first.signal.aborted).toBe(false);
});

// Release, extend, orphan, transfer.

test("a release that the engine does not answer rejects, a second call too, and dispose does not", async () => {
  const lease = await open({ release: () => Promise.reject(unreachable) }).acquire("k", { ttlMs });
  await expect(lease.release()).rejects.toBe(unreachable);
  await expect(lease.release()).rejects.toBe(unreachable);
  await lease[Symbol.asyncDispose]();
});

test("after a release the lease is over for its owner, and its signal is not aborted", async () => {
  const lease = await open().acquire("k", { ttlMs });
  const { signal } = lease;
  expect(await lease.release()).toBe(true);
  expect([lease.remainingMs(), signal.aborted]).toEqual([0, false]);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("released"));
  await expect(lease.extend()).rejects.toEqual(lost("released"));
  await clock.advance(2 * ttlMs);
  expect(signal.aborted).toBe(false);
});

test("a lost lease is taken back at the engine all the same, in case it still has it", async () => {
  const released: string[] = [];
  const locks = open({
    release: async (key) => {
      released.push(key);
      return true;
    },
  });
  const lease = await locks.acquire("k", { ttlMs });
  clock.block(endMs);
  expect(await lease.release()).toBe(false);
  expect(released).toEqual(["k"]);
});

test("extend moves validUntil and puts the next renewal off", async () => {
  let renewals = 0;
  const extend: Driver["extend"] = (request) => {
    renewals += 1;
    return engine.extend(request);
  };
  const lease = await open({ extend }).acquire("k", { ttlMs });
  await clock.advance(500);
  await lease.extend(60_000);
  expect(lease.validUntil).toBe(500 + 60_000 - 602);
  await clock.advance(30_000);
  expect(renewals).toBe(1);
});

test("an extension that is not answered rejects and loses nothing; one that is refused is a loss", async () => {
  const answers: Extension[] = [
    { outcome: "unknown", error: unreachable },
    { outcome: "lost", reason: "broken" },
  ];
  const locks = open({ extend: async () => answers.shift() as Extension });
  const lease = await locks.acquire("k", { ttlMs, renew: false });
  await expect(lease.extend()).rejects.toBe(unreachable);
  expect(lease.remainingMs()).toBe(endMs);
  await expect(lease.extend()).rejects.toEqual(lost("broken"));
  expect(lease.signal.aborted).toBe(true);
});

test("an orphan is renewed no more, and its lock is free when its TTL has passed", async () => {
  const lease = await open().acquire("k", { ttlMs });
  await clock.advance(1_500);
  lease.orphan();
  const next = open().acquire("k", { waitMs: Infinity });
  await clock.advance(lease.validUntil - clock.now() + 31);
  expect(await settled(next)).toBe("pending");
  await clock.advance(1);
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("a transferred lease is over here: it throws, answers false, and is not renewed", async () => {
  let renewals = 0;
  const extend: Driver["extend"] = (request) => {
    renewals += 1;
    return engine.extend(request);
  };
  const lease = await open({ extend }).acquire("k", { ttlMs, owner: "first" });
  const { signal } = lease;
  const serialized = JSON.parse(JSON.stringify(lease.transfer())) as ReturnType<Lease["transfer"]>;
  expect(lease.remainingMs()).toBe(0);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("released"));
  expect(() => lease.transfer()).toThrow(lost("released"));
  expect([await lease.release(), await lease.release()]).toEqual([false, false]);
  const adopted = await open().adopt(serialized);
  expect(adopted).toMatchObject({ key: "k", owner: "first", fencingToken: lease.fencingToken });
  await clock.advance(10_000);
  expect([renewals, signal.aborted, adopted.remainingMs() > 0]).toEqual([0, false, true]);
  expect(await adopted.release()).toBe(true);
});

test("a transferred lease is not handed to the next in line", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  const serialized = lease.transfer();
  await lease.release();
  expect(await settled(next)).toBe("pending");
  const adopted = await locks.adopt(serialized);
  await adopted.release();
  expect(((await settled(next)) as Lease).fencingToken > adopted.fencingToken + 1n).toBe(true);
});

test("an adopted lease that is gone is refused, and one is renewed only if it is to be", async () => {
  const locks = open();
  const serialized = (await locks.acquire("k", { ttlMs })).transfer();
  const adopted = await locks.adopt(serialized, { renew: false });
  const { signal } = adopted;
  await clock.advance(ttlMs);
  expect(signal.reason).toEqual(lost("expired"));
  await expect(locks.adopt(serialized)).rejects.toEqual(lost("expired"));
});

test("what a lease tells of itself in JSON has no secret", async () => {
  const lease = await open({}, { owner: "me" }).acquire("k", { ttlMs });
  const json = JSON.stringify(lease);
  expect(JSON.parse(json)).toEqual({
    key: "k",
    keys: ["k"],
    owner: "me",
    fencingToken: lease.fencingToken.toString(),
    remainingMs: endMs,
  });
  expect(json).not.toContain(lease.transfer().token);
});

// Waiting.

test("waitMs 0 asks once and says who holds", async () => {
  const locks = open({}, { owner: "me" });
  await locks.acquire("k", { ttlMs });
  const refused = await settled(open().acquire("k", { waitMs: 0 }));
  expect(refused).toMatchObject({ code: "wait-timeout", holder: { owner: "me" } });
});

test("more callers than may wait are refused at once, and those who wait are not disturbed", async () => {
  const locks = open({}, { maxWaiters: 2 });
  const lease = await locks.acquire("k", { ttlMs });
  const waiting = [locks.acquire("k"), locks.acquire("k")];
  const refused = await settled(locks.acquire("k"));
  expect(isLockError(refused, "too-many-waiters") && refused.retryable).toBe(true);
  const other = await locks.acquire("another key");
  expect(other.key).toBe("another key");
  await lease.release();
  const second = (await settled(waiting[0] as Promise<Lease>)) as Lease;
  const waits = locks.acquire("k");
  await second.release();
  expect(await settled(waiting[1] as Promise<Lease>)).toMatchObject({ key: "k" });
  expect(await settled(waits)).toBe("pending");
  waits.catch(() => undefined); // ended by close
});

test("a caller that aborts while its grant is under way leaves the lock free", async () => {
  let grant: (() => void) | undefined;
  const acquire: Driver["acquire"] = (request) => {
    const pending = engine.acquire(request);
    const result = new Promise<void>((resolve) => (grant = resolve)).then(() => pending.result);
    return { result, cancel: () => undefined }; // too late to take back
  };
  const locks = open({ acquire });
  const caller = new AbortController();
  for (const call of [
    () => locks.acquire("k", { signal: caller.signal }),
    () => locks.tryAcquire("k", { signal: caller.signal }),
  ]) {
    const aborted = call();
    await clock.advance(0);
    caller.abort("changed my mind");
    grant?.();
    expect(await settled(aborted)).toBe("changed my mind");
    expect((await engine.inspect("k")).holders).toEqual([]);
  }
});

test("an abort in the line takes effect at once, and the turn goes on", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const caller = new AbortController();
  const aborted = locks.acquire("k", { signal: caller.signal });
  const next = locks.acquire("k");
  caller.abort();
  expect(await settled(aborted)).toBe(caller.signal.reason);
  await lease.release();
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("the head of the line that aborts at the engine hands its turn on", async () => {
  const theirs = await open().acquire("k", { ttlMs });
  const locks = open();
  const caller = new AbortController();
  const head = locks.acquire("k", { signal: caller.signal });
  const next = locks.acquire("k");
  await clock.advance(0);
  caller.abort();
  expect(await settled(head)).toBe(caller.signal.reason);
  expect((await engine.inspect("k")).waiterCount).toBe(1);
  await theirs.release();
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("a run of hand-overs ends after handover.max and passes on to another process", async () => {
  const [ours, theirs] = [open({}, { handover: { max: 2, maxMs: 60_000 } }), open()];
  const served: string[] = [];
  const use = async (locks: Locks, name: string): Promise<void> => {
    const lease = await locks.acquire("k", { ttlMs });
    served.push(name);
    await clock.advance(0);
    await lease.release();
  };
  const held = await ours.acquire("k", { ttlMs });
  const all = [use(theirs, "theirs"), ...["1", "2", "3", "4"].map((name) => use(ours, name))];
  await held.release();
  await Promise.all(all);
  expect(served).toEqual(["1", "2", "theirs", "3", "4"]);
});

test("a run of hand-overs ends after handover.maxMs", async () => {
  const [ours, theirs] = [open({}, { handover: { max: 100, maxMs: 50 } }), open()];
  const held = await ours.acquire("k", { ttlMs });
  const others = theirs.acquire("k", { ttlMs });
  const [first, second] = [ours.acquire("k", { ttlMs }), ours.acquire("k", { ttlMs })];
  await clock.advance(49);
  await held.release();
  const handed = (await settled(first)) as Lease;
  await clock.advance(1);
  await handed.release();
  expect(await settled(second)).toBe("pending");
  await (await others).release();
  expect(await settled(second)).toMatchObject({ key: "k" });
});

test("a lease with less than a third of its TTL left is not handed over but passed on", async () => {
  const locks = open();
  const held = await locks.acquire("k", { ttlMs, renew: false });
  const next = locks.acquire("k", { ttlMs });
  await clock.advance(endMs - 999);
  await held.release();
  const granted = (await settled(next)) as Lease;
  expect(granted.remainingMs()).toBe(endMs);
});

test("a caller that does not renew is not handed a lease of unknown age", async () => {
  const locks = open();
  const held = await locks.acquire("k", { ttlMs });
  const next = locks.acquire("k", { ttlMs, renew: false });
  await clock.advance(500);
  await held.release();
  expect(((await settled(next)) as Lease).remainingMs()).toBe(endMs);
});

// Close.

test("close ends within its time, though the engine hangs", async () => {
  const never = new Promise<never>(() => undefined);
  const locks = open({ release: () => never }, { closeTimeoutMs: 700 });
  const lease = await locks.acquire("k", { ttlMs });
  const waiting = locks.acquire("k");
  let isClosed = false;
  const closing = locks.close().then(() => (isClosed = true));
  expect(isLockError(await settled(waiting), "closed")).toBe(true);
  await clock.advance(699);
  expect(isClosed).toBe(false);
  await clock.advance(1);
  expect(isClosed).toBe(true);
  await closing;
  expect(lease.remainingMs()).toBe(0);
});

test("close waits for no longer than its releases take, and a second close for the same", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const closing = locks.close();
  expect(locks.close()).toBe(closing);
  expect(await settled(closing)).toBeUndefined();
  expect(await lease.release()).toBe(true);
  expect(isLockError(await settled(locks.acquire("k")), "closed")).toBe(true);
});

test("a release that fails does not fail close", async () => {
  const locks = open({ release: () => Promise.reject(unreachable) });
  await locks.acquire("k", { ttlMs });
  expect(await settled(locks.close())).toBeUndefined();
});

test("a grant that arrives after close is given back", async () => {
  const grants: (() => void)[] = [];
  const acquire: Driver["acquire"] = (request) => {
    const pending = engine.acquire(request);
    const result = new Promise<void>((resolve) => grants.push(resolve)).then(() => pending.result);
    return { result, cancel: () => undefined };
  };
  const locks = open({ acquire });
  const calls = [locks.tryAcquire("a"), locks.acquire("b")];
  const closing = locks.close();
  for (const grant of grants) {
    grant();
  }
  await closing;
  for (const call of calls) {
    expect(isLockError(await settled(call), "closed")).toBe(true);
  }
  expect((await open().list()).locks).toEqual([]);
});

// Leaks.

const collectGarbage = globalThis.gc as () => void;

/** Goes through renewals, with garbage collected before each. A lease is held weakly from its first renewal on. */
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

test("a lease that is forgotten without a release is told of, renewed no more, and expires", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const forget = async (): Promise<bigint> => (await locks.acquire("k", { ttlMs })).fencingToken;
    const fencingToken = await forget();
    await renewAndCollect(2);
    expect(leaks).toEqual([{ key: "k", fencingToken }]);
    expect(warnings).toEqual([[expect.stringContaining('"k"'), { code: "HOLDFAST_LEAKED_LEASE" }]]);
    await clock.advance(ttlMs);
    expect(await open().tryAcquire("k")).not.toBeNull();
  });
});

test("a lease whose signal is kept is not forgotten", async () => {
  const locks = open();
  await listening(async (warnings, leaks) => {
    const keep = async (): Promise<AbortSignal> => (await locks.acquire("k", { ttlMs })).signal;
    const signal = await keep();
    await renewAndCollect(5);
    expect([leaks, warnings, signal.aborted]).toEqual([[], [], false]);
    expect(await open().tryAcquire("k")).toBeNull();
  });
});

test("a lease inside its running withLock is not forgotten, though the work does not use it", async () => {
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

test("a lease that was released, or is only to expire, is not told as forgotten", async () => {
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

// The process.

test("a held lease does not keep its process alive", async () => {
  const program = fileURLToPath(new URL("support/holds-and-ends.mjs", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const said: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const tooLong = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  clearTimeout(tooLong);
  expect([said.join(""), code, signal]).toEqual(["held\n", 0, null]);
});
