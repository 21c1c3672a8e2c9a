import type { Locks } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { DelayedConnection } from "../../../support/delayed-connection.ts";
import { onSingleServer, pass, process, server } from "../../../support/single-server.ts";

// One server. A request is executed after the reply to its token's release, and no client receives its own
// reply.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
/** How long after its sending a request may have an effect: `commandTimeoutMs` and 3 s. */
const latestMs = 5_000;

let delayed: DelayedConnection;
let locks: Locks;

onSingleServer();

beforeEach(async () => {
  delayed = new DelayedConnection(server.connect());
  locks = await process(delayed);
});

test("a request that is executed after its clean-up leaves no grant", async () => {
  delayed.holdBack(["acquire"]);
  const tried = locks.tryAcquire("k", { ttlMs }).catch((error: unknown) => error);
  await pass(2_100);
  expect(await tried).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
  await pass(1_000);
  expect(delayed.whenSent("release")).toBe(1); // the release has its reply
  delayed.executeHeld();
  await pass(10);
  expect(server.get(lock)).not.toBeNull();
  await pass(latestMs);
  expect(server.get(lock)).toBeNull();
  expect(delayed.whenSent("release")).toBe(2);
});

test("a request that is executed after its clean-up leaves no queue entry", async () => {
  const others = await process();
  const holding = others.acquire("k", { ttlMs });
  await pass(100);
  delayed.holdBack(["acquire"]);
  const caller = new AbortController();
  const waiting = locks
    .acquire("k", { ttlMs, waitMs: 60_000, signal: caller.signal })
    .catch(() => "abandoned");
  await pass(100);
  caller.abort();
  expect(await waiting).toBe("abandoned");
  await pass(100);
  delayed.executeHeld();
  await pass(10);
  expect(server.dump(queue)).toBeDefined();
  await pass(latestMs);
  expect(server.dump(queue)).toBeUndefined();
  expect(await (await holding).release()).toBe(true);
});

test("a repeat that is executed after the release of its lease leaves no grant", async () => {
  delayed.holdBack(["acquire"], 1);
  const acquired = locks.acquire("k", { ttlMs, waitMs: 20_000, renew: false });
  await pass(2_500);
  const lease = await acquired; // by the second request
  const released = lease.release();
  await pass(10);
  expect(await released).toBe(true);
  delayed.executeHeld();
  await pass(10);
  expect(server.get(lock)).not.toBeNull();
  await pass(latestMs);
  expect(server.get(lock)).toBeNull();
});

test("a poll that is executed after the release of its lease leaves no queue entry", async () => {
  const others = await process();
  const holding = others.acquire("k", { ttlMs: 300 });
  await pass(100);
  const waiting = locks.acquire("k", { ttlMs, waitMs: 60_000 });
  await pass(50);
  delayed.holdBack(["acquire"]);
  await pass(600);
  expect(delayed.whenSent("acquire")).toBe(2); // the second is a poll
  const held = await holding;
  await Promise.all([held.release(), pass(10)]);
  const lease = await waiting; // by notification
  await Promise.all([lease.release(), pass(10)]);
  const next = others.acquire("k", { ttlMs });
  await pass(10);
  delayed.executeHeld();
  await pass(10);
  expect(server.dump(queue)).toBeDefined();
  await pass(latestMs);
  expect(server.dump(queue)).toBeUndefined();
  expect(await (await next).release()).toBe(true);
});

test("a clean-up without replies outlasts the residue of a late request", async () => {
  delayed.holdBack(["acquire"]);
  const tried = locks.tryAcquire("k", { ttlMs: 1_500 }).catch((error: unknown) => error);
  await pass(1_900);
  delayed.loseReplies(["release"]);
  await pass(200);
  expect(await tried).toMatchObject({ outcome: "unknown" });
  await pass(2_700); // the TTL has passed, counted from the end of the try
  delayed.loseReplies([]);
  delayed.executeHeld();
  await pass(10);
  expect(server.get(lock)).not.toBeNull();
  await pass(1_350); // less than the TTL
  expect(server.get(lock)).toBeNull();
});

test("a token whose requests all have replies is released once", async () => {
  const acquired = locks.acquire("k", { ttlMs });
  await pass(10);
  const released = (await acquired).release();
  await pass(3 * latestMs);
  expect(await released).toBe(true);
  expect(delayed.whenSent("release")).toBe(1);
});
