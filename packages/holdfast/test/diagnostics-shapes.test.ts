import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Lease, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { Driver } from "../src/driver.ts";
import { EngineError, QuorumError } from "../src/errors.ts";
import { altered } from "./support/altered.ts";

// The names and fields below are public. Semantic versioning covers them, so no entry may be removed or changed.

const lock = "engine:string instance:number key:string kind:string mode:string";
const shapes: Readonly<Record<string, string>> = {
  "holdfast:queued": `call:number ${lock} position:number where:string`,
  "holdfast:granted": `call:number ${lock} fencingToken:bigint queuedMs:number via:string where:string`,
  "holdfast:lost": `${lock} fencingToken:bigint reason:string`,
  "holdfast:late-renewal": `${lock} fencingToken:bigint lateMs:number marginMs:number`,
  "holdfast:handover": `${lock} fencingToken:bigint`,
  "holdfast:broken": "engine:string fencingToken:bigint instance:number key:string reason:string",
  "holdfast:fence-check": "engine:string fencingToken:bigint instance:number key:string result:string",
  "tracing:holdfast:acquire:start": `call:number ${lock} ttlMs:number waitMs:number`,
  "tracing:holdfast:acquire:asyncEnd": `call:number error:object errorCode:string fencingToken:bigint ${lock} outcome:string queuedMs:number ttlMs:number via:string waitMs:number`,
  "tracing:holdfast:renew:start": `${lock} fencingToken:bigint marginMs:number ttlMs:number`,
  "tracing:holdfast:renew:asyncEnd": `errorCode:string ${lock} fencingToken:bigint marginMs:number outcome:string ttlMs:number`,
  "tracing:holdfast:release:start": `${lock} fencingToken:bigint`,
  "tracing:holdfast:release:asyncEnd": `error:object errorCode:string ${lock} fencingToken:bigint released:boolean`,
  "tracing:holdfast:hold:start": `call:number ${lock} fencingToken:bigint ttlMs:number`,
  "tracing:holdfast:hold:asyncEnd": `call:number ${lock} fencingToken:bigint heldMs:number overrunMs:number reason:string ttlMs:number`,
};

const ttlMs = 3_000;
const away = new EngineError("the engine is away", { outcome: "unknown", retryable: true });

let clock: ManualClock;
let engine: Driver;
let locks: Locks;
let published: [channel: string, message: Record<string, unknown>][];
const listen = (message: unknown, name: string | symbol): void => {
  published.push([String(name), { ...(message as object) }]);
};

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  engine = memory({ clock, random: manualRandom(1) });
  locks = createLocks(engine);
  published = [];
  Object.keys(shapes).forEach((name) => subscribe(name, listen));
});

afterEach(async () => {
  Object.keys(shapes).forEach((name) => unsubscribe(name, listen));
  await locks.close();
});

/** Another process at the engine. */
function other(changes: Partial<Driver> = {}): Locks {
  return createLocks(altered(engine, { close: async () => undefined, ...changes }), { handover: false });
}

/** The fields of the messages on one channel, each with its type. */
function fieldsOf(name: string): string {
  const fields = published
    .filter(([channelName]) => channelName === name)
    .flatMap(([, message]) => Object.entries(message))
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => `${field}:${typeof value}`);
  return [...new Set(fields)].sort().join(" ");
}

/** The ends of all acquires, with the named fields. */
function ends(...fields: string[]): unknown[][] {
  return published
    .filter(([name]) => name === "tracing:holdfast:acquire:asyncEnd")
    .map(([, message]) => fields.map((field) => message[field]));
}

test("every channel has the fields that are listed here, and no others", async () => {
  const first = await locks.acquire("k", { ttlMs });
  const [second, third] = [locks.acquire("k", { ttlMs }), locks.acquire("k", { ttlMs })];
  await first.release();
  await (await second).release();
  const lease = await third;
  await clock.advance(ttlMs);
  clock.block(2_100);
  await clock.advance(0);
  await locks.checkFence("k", lease.fencingToken);
  await locks.admin.breakLock("k", { fencingToken: lease.fencingToken, reason: "test" });
  const refusing = other({ extend: async () => ({ outcome: "unknown", error: away }), release: () => Promise.reject(away) }); // prettier-ignore
  const held = await refusing.acquire("k", { ttlMs });
  await locks.acquire("k", { waitMs: 0 }).catch(() => undefined);
  await held.extend().catch(() => undefined);
  await held.release().catch(() => undefined);
  for (const [name, fields] of Object.entries(shapes)) {
    expect([name, fieldsOf(name)]).toEqual([name, fields.split(" ").sort().join(" ")]);
  }
});

test("every kind of lock publishes its acquires and holds, with its kind and mode", async () => {
  const run = async (): Promise<void> => undefined;
  await locks.withLock("m", run);
  await locks.readWrite("rw").read.withLock(run);
  await locks.readWrite("rw").write.withLock(run);
  await locks.semaphore("s", { limit: 2 }).withLock(run);
  await locks.all(["b", "a"]).withLock(run);
  const election = locks.election("e");
  await election.campaign();
  await election.resign();
  await locks.once("o", { keepMs: 1_000 }, run);
  await clock.advance(1_000);
  await locks.reentrant("r").withLock(() => locks.reentrant("r").withLock(run));
  const kinds = [
    ["m", "mutex", "exclusive"],
    ["rw", "read-write", "read"],
    ["rw", "read-write", "write"],
    ["s", "semaphore", "semaphore"],
    ["a", "mutex", "exclusive"],
    ["b", "mutex", "exclusive"],
    ["e", "mutex", "exclusive"],
    ["o", "mutex", "exclusive"],
    ["r", "mutex", "exclusive"],
  ];
  expect(ends("key", "kind", "mode")).toEqual(kinds);
  expect(new Set(ends("engine", "instance", "outcome", "queuedMs").map(String))).toEqual(new Set([`memory,${locks.instance},granted,0`])); // prettier-ignore
  for (const end of ["start", "asyncEnd"]) {
    const holds = published.filter(([name]) => name === `tracing:holdfast:hold:${end}`);
    expect(holds.map(([, { key, kind, mode }]) => [key, kind, mode])).toEqual(kinds);
  }
});

test("an acquire says how its grant arrived, and how long it was queued", async () => {
  const there = other();
  const foreign = await there.acquire("k", { ttlMs });
  const byMessage = locks.acquire("k", { ttlMs });
  const byReply = locks.acquire("k", { ttlMs });
  const byHandover = locks.acquire("k", { ttlMs });
  await clock.advance(300);
  await foreign.release();
  await clock.advance(50);
  await (await byMessage).release();
  await (await byReply).release();
  await (await byHandover).release();
  const shared = [1, 2].map(() => locks.acquire("k", { ttlMs, attemptId: "a" }));
  const leases: Lease[] = await Promise.all(shared);
  await Promise.all(leases.map((lease) => lease.release()));
  expect(ends("outcome", "via", "queuedMs").slice(1)).toEqual([
    ["granted", "message", 300],
    ["granted", "reply", 350],
    ["granted", "handover", 350],
    ["granted", "reply", 0],
    ["granted", "shared", 0],
  ]);
  const adopted = await locks.adopt((await locks.acquire("k", { ttlMs })).transfer());
  await adopted.release();
  const [end] = published.filter(([name]) => name === "tracing:holdfast:hold:asyncEnd").slice(-1);
  expect(end?.[1]).toMatchObject({ kind: "unknown", mode: "unknown", reason: "released" });
});

test("an acquire without a grant says how its wait ended", async () => {
  const holder = await locks.acquire("k", { ttlMs: 30_000 });
  const signal = new AbortController();
  const there = other();
  const waiting = [
    there.acquire("k", { waitMs: 100 }),
    there.acquire("k", { signal: signal.signal }),
    there.acquire("k", { waitMs: 0 }),
    other({ acquire: () => ({ result: Promise.reject(away), cancel: () => undefined }) }).acquire("u"),
    other({
      acquire: () => ({
        result: Promise.reject(new QuorumError({ key: "q", outcome: "none", votes: [], retryable: false })),
        cancel: () => undefined,
      }),
    }).acquire("q"),
    there.semaphore("k", { limit: 2 }).acquire(),
  ].map((call) => call.catch(() => undefined));
  await there.tryAcquire("k");
  await clock.advance(50);
  signal.abort();
  await clock.advance(100);
  const closed = there.acquire("k").catch(() => undefined);
  await clock.advance(10);
  await there.close();
  await Promise.all([...waiting, closed, holder.release()]);
  const results = ends("call", "outcome", "errorCode", "queuedMs").slice(1);
  expect(results.sort(([a], [b]) => Number(a) - Number(b)).map(([, ...result]) => result)).toEqual([
    ["wait-timeout", "wait-timeout", 100],
    ["aborted", undefined, 50],
    ["held", "wait-timeout", 0],
    ["unavailable", "engine-unavailable", 0],
    ["quorum-failed", "quorum-not-reached", 0],
    ["error", "kind-mismatch", 0],
    ["held", undefined, 0],
    ["aborted", "closed", 10],
  ]);
});

test("labels of a subscriber are shown with the holder, and never make an acquire fail", async () => {
  const add = (message: unknown): void => {
    (message as { labels: object }).labels = { traceparent: "00-1-2-01", own: "theirs" };
  };
  channel("tracing:holdfast:acquire:start").subscribe(add);
  try {
    const lease = await locks.acquire("k", { ttlMs, labels: { own: "ours" } });
    expect((await locks.inspect("k")).holders[0]?.labels).toEqual({ traceparent: "00-1-2-01", own: "ours" });
    await lease.release();
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`l${index}`, "v"]));
    const full = await locks.acquire("k", { ttlMs, labels: many });
    expect((await locks.inspect("k")).holders[0]?.labels).toEqual(many);
    await full.release();
  } finally {
    channel("tracing:holdfast:acquire:start").unsubscribe(add);
  }
});

test("two Locks of one process have different numbers", () => {
  const numbers = [locks, other(), other()].map(({ instance }) => instance);
  expect(new Set(numbers).size).toBe(3);
});
