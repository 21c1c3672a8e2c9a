import { channel, subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Lease, type Locks, type LocksOptions } from "holdfast";
import { memory } from "holdfast/memory";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

import { hasSubscribers, publish, trace, traces, type LeaseFacts } from "../src/diagnostics.ts";
import type { Driver } from "../src/driver.ts";
import { contended } from "../src/testing/conformance/fixture.ts";
import { altered } from "./support/altered.ts";

const ttlMs = 3_000;
const plain = "queued granted vote extended lost late-renewal handover broken fence-check node leaked".split(
  " ",
);
const traceEvents = ["acquire", "renew", "release", "hold"].flatMap((name) =>
  ["start", "end", "asyncStart", "asyncEnd", "error"].map((event) => `tracing:holdfast:${name}:${event}`),
);

const facts: LeaseFacts = { key: "k", instance: 1, engine: "memory", kind: "mutex", mode: "exclusive", fencingToken: 3n }; // prettier-ignore

type Published = [channel: string, message: Record<string, unknown>];

let clock: ManualClock;
let engine: Driver;
let locks: Locks;
let ids: string[];
let stopListening: (() => void)[];

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  ids = [];
  stopListening = [];
  const random = manualRandom(1);
  const id = (): string => {
    ids.push(random.id());
    return ids.at(-1) as string;
  };
  engine = memory({ clock, random: { id, nextFloat: () => random.nextFloat() } });
  locks = createLocks(engine);
});

afterEach(async () => {
  for (const stop of stopListening) {
    stop();
  }
  await locks.close();
});

/** Copies every message that the channels publish from now on. */
function listen(...channels: string[]): Published[] {
  const published: Published[] = [];
  for (const name of channels) {
    const listener = (message: unknown): void => {
      published.push([name, { ...(message as object) }]);
    };
    subscribe(name, listener);
    stopListening.push(() => unsubscribe(name, listener));
  }
  return published;
}

function other(changes: Partial<Driver> = {}, options?: LocksOptions): Locks {
  return createLocks(altered(engine, { close: async () => undefined, ...changes }), options);
}

/** Causes one of each event: a hand-over, a wait, a break, a loss, a late renewal, a failed acquire. */
async function liveThroughEverything(): Promise<void> {
  const first = await contended(locks, "k", { ttlMs, reason: "test" });
  const [handed, passedOn] = [locks.acquire("k", { ttlMs }), locks.acquire("k", { ttlMs })];
  await first.release();
  await clock.advance(ttlMs);
  await (await handed).release();
  const second = await passedOn;
  clock.block(2_200);
  await clock.advance(0);
  await locks.admin.breakLock("k", { fencingToken: second.fencingToken, reason: "test" });
  await second.release();
  const third = await locks.acquire("k", { ttlMs });
  await locks.tryAcquire("k");
  await locks.acquire("k", { waitMs: 0 }).catch(() => undefined);
  third.transfer();
  (await locks.acquire("other", { ttlMs, renew: false })).orphan();
  await clock.advance(2 * ttlMs);
}

test("no channel carries a token", async () => {
  const published = listen(...plain.map((name) => `holdfast:${name}`), ...traceEvents);
  await liveThroughEverything();
  const channels = new Set(published.map(([name]) => name));
  expect([...channels]).toEqual(
    expect.arrayContaining([
      "holdfast:queued",
      "holdfast:lost",
      "holdfast:late-renewal",
      "holdfast:handover",
      "holdfast:broken",
      "tracing:holdfast:acquire:error",
      ...["acquire", "renew", "release", "hold"].flatMap((name) => [
        `tracing:holdfast:${name}:start`,
        `tracing:holdfast:${name}:asyncEnd`,
      ]),
    ]),
  );
  const text = JSON.stringify(published, (_name, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  expect(ids.length).toBeGreaterThan(2);
  for (const id of ids) {
    expect(text).not.toContain(id);
  }
  expect(text).not.toContain("token");
});

test("no channel publishes a lease, because a lease can reveal its token", async () => {
  const published = listen(...plain.map((name) => `holdfast:${name}`), ...traceEvents);
  await liveThroughEverything();
  const givesToken = published.filter(([, message]) =>
    Object.values(message).some((value) => typeof (value as Lease | undefined)?.transfer === "function"),
  );
  expect(new Set(givesToken.map(([name]) => name))).toEqual(new Set());
});

test("without a subscriber nothing is computed", async () => {
  const computed = (): never => expect.unreachable();
  publish("lost", computed);
  const result = await trace(traces.acquire, computed, () => Promise.resolve(7), computed);
  expect([result, hasSubscribers(traces.acquire), hasSubscribers(traces.hold)]).toEqual([7, false, false]);
});

test("with a subscriber each message is computed once", async () => {
  const published = listen("holdfast:handover", "tracing:holdfast:release:asyncEnd");
  publish("handover", () => facts);
  await trace(
    traces.release,
    () => ({ ...facts, released: undefined, errorCode: undefined, error: undefined }),
    () => Promise.resolve(true),
    (context, settled) => Object.assign(context, { released: (settled as { result: boolean }).result }),
  );
  expect(published).toEqual([
    ["holdfast:handover", facts],
    ["tracing:holdfast:release:asyncEnd", { ...facts, released: true }],
  ]);
});

test("a subscriber to any of the five channels of a trace receives it", () => {
  for (const event of ["start", "end", "asyncStart", "asyncEnd", "error"]) {
    const listener = (): void => undefined;
    subscribe(`tracing:holdfast:renew:${event}`, listener);
    expect(hasSubscribers(traces.renew)).toBe(true);
    unsubscribe(`tracing:holdfast:renew:${event}`, listener);
    expect(hasSubscribers(traces.renew)).toBe(false);
  }
});

test("acquire is traced with its outcome and fencing token", async () => {
  const published = listen("tracing:holdfast:acquire:start", "tracing:holdfast:acquire:asyncEnd");
  const lease = await locks.acquire("k", { ttlMs, waitMs: 500 });
  await other().tryAcquire("k");
  expect(published).toMatchObject([
    ["tracing:holdfast:acquire:start", { key: "k", waitMs: 500 }],
    ["tracing:holdfast:acquire:asyncEnd", { key: "k", outcome: "granted", fencingToken: lease.fencingToken }],
    ["tracing:holdfast:acquire:start", { key: "k", waitMs: 0 }],
    ["tracing:holdfast:acquire:asyncEnd", { key: "k", outcome: "held" }],
  ]);
});

test("each of several keys is traced", async () => {
  const published = listen("tracing:holdfast:acquire:start", "tracing:holdfast:acquire:asyncEnd");
  const lease = await locks.all(["b", "a"]).acquire({ ttlMs });
  expect(published).toMatchObject([
    ["tracing:holdfast:acquire:start", { key: "a", waitMs: 0 }],
    ["tracing:holdfast:acquire:start", { key: "b", waitMs: 0 }],
    ["tracing:holdfast:acquire:asyncEnd", { key: "a", fencingToken: lease.fencingTokens.get("a") }],
    ["tracing:holdfast:acquire:asyncEnd", { key: "b", fencingToken: lease.fencingTokens.get("b") }],
  ]);
  expect(await other().all(["b", "c"]).tryAcquire()).toBeNull();
  expect(published.slice(6)).toContainEqual([
    "tracing:holdfast:acquire:asyncEnd",
    expect.objectContaining({ key: "b", outcome: "held" }),
  ]);
});

test("a failed acquire is traced with its error", async () => {
  const published = listen("tracing:holdfast:acquire:error");
  await locks.acquire("k");
  await expect(locks.acquire("k", { waitMs: 0 })).rejects.toThrow();
  expect(published).toMatchObject([
    ["tracing:holdfast:acquire:error", { key: "k", error: { code: "wait-timeout" } }],
  ]);
});

test("renew is traced with the margin left, and its outcome", async () => {
  const published = listen("tracing:holdfast:renew:start", "tracing:holdfast:renew:asyncEnd");
  await locks.acquire("k", { ttlMs });
  await clock.advance(1_000);
  expect(published).toMatchObject([
    ["tracing:holdfast:renew:start", { key: "k", marginMs: 2_000, ttlMs }],
    ["tracing:holdfast:renew:asyncEnd", { key: "k", marginMs: 2_000, outcome: "extended" }],
  ]);
});

test("release is traced with its outcome", async () => {
  const published = listen("tracing:holdfast:release:asyncEnd");
  const lease = await locks.acquire("k", { ttlMs });
  await lease.release();
  await lease.release();
  const late = await locks.acquire("k", { ttlMs });
  clock.block(ttlMs);
  await late.release();
  expect(published).toMatchObject([
    ["tracing:holdfast:release:asyncEnd", { key: "k", released: true }],
    ["tracing:holdfast:release:asyncEnd", { key: "k", released: false }],
  ]);
});

test("a hold is traced from its grant to its end, with the reason and any overrun", async () => {
  const published = listen("tracing:holdfast:hold:start", "tracing:holdfast:hold:asyncEnd");
  const start = "tracing:holdfast:hold:start";
  const end = "tracing:holdfast:hold:asyncEnd";
  const released = await locks.acquire("a", { ttlMs });
  await released.release();
  const late = await locks.acquire("b", { ttlMs });
  clock.block(2_968 + 500);
  await late.release();
  const given = await locks.acquire("c", { ttlMs });
  given.transfer();
  const { fencingToken } = released;
  expect(published).toMatchObject([
    [start, { key: "a", fencingToken, ttlMs }],
    [end, { key: "a", fencingToken, reason: "released", heldMs: 0, overrunMs: 0 }],
    [start, { key: "b", fencingToken: late.fencingToken }],
    [end, { fencingToken: late.fencingToken, reason: "expired", heldMs: 3_468, overrunMs: 500 }],
    [start, { key: "c", fencingToken: given.fencingToken }],
    [end, { key: "c", fencingToken: given.fencingToken, reason: "transferred", overrunMs: 0 }],
  ]);
});

test("waits in the local queue, their grants and hand-overs are published", async () => {
  const lease = await contended(locks, "k", { ttlMs });
  const published = listen("holdfast:queued", "holdfast:handover", "holdfast:granted");
  const waiting = [locks.acquire("k", { ttlMs }), locks.acquire("k", { ttlMs })];
  await lease.release();
  const next = (await waiting[0]) as Lease;
  const { fencingToken } = next;
  expect(published).toMatchObject([
    ["holdfast:queued", { key: "k", where: "process", position: 0 }],
    ["holdfast:queued", { key: "k", where: "process", position: 1 }],
    ["holdfast:handover", { key: "k", fencingToken }],
    ["holdfast:granted", { call: published[0]?.[1]["call"], via: "handover", queuedMs: 0, fencingToken }],
  ]);
  await next.release();
  await (await waiting[1])?.release();
});

test("a break is published by both processes", async () => {
  const published = listen("holdfast:broken", "holdfast:lost");
  const { fencingToken } = await locks.acquire("k", { ttlMs });
  await locks.admin.breakLock("k", { fencingToken, reason: "maintenance" });
  expect(published).toHaveLength(2);
  expect(published).toEqual(
    expect.arrayContaining([
      ["holdfast:broken", expect.objectContaining({ key: "k", fencingToken, reason: "maintenance" })],
      ["holdfast:lost", expect.objectContaining({ key: "k", fencingToken, reason: "broken" })],
    ]),
  );
});

test("an error of a subscriber does not reach the caller", async () => {
  const thrown: unknown[] = [];
  const onUncaught = (error: unknown): void => void thrown.push(error);
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", onUncaught);
  const fail = (): never => {
    throw new Error("a subscriber failed");
  };
  channel("holdfast:queued").subscribe(fail);
  tracingChannel("holdfast:hold").start.subscribe(fail);
  try {
    const lease = await locks.acquire("k", { ttlMs });
    const waiting = locks.acquire("k", { ttlMs });
    await lease.release();
    expect(await (await waiting).release()).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    channel("holdfast:queued").unsubscribe(fail);
    tracingChannel("holdfast:hold").start.unsubscribe(fail);
    process.off("uncaughtException", onUncaught);
    for (const listener of listeners) {
      process.on("uncaughtException", listener);
    }
  }
  expect(thrown.length).toBeGreaterThan(0); // Node reports the error to the process
});
