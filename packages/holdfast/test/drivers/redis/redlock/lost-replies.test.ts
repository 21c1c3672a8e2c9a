import { expect, test } from "vitest";

import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";
import { commandText } from "../../../support/diagnostics-log.ts";

// Grants, releases and changes whose replies or notifications are lost.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
const nothing = [undefined, undefined, undefined];

test("a grant without a reply is cleaned up when the caller stops waiting", async () => {
  const fixture = new QuorumFixture();
  await acquireWithoutReplies(fixture, await fixture.client());
  expect(fixture.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
});

test("a client that never received a notification adds no queue entry", async () => {
  const fixture = new QuorumFixture();
  const holder = await fixture.client();
  for (const server of fixture.servers) {
    server.dropMessages(() => true);
  }
  const waiter = await fixture.client();
  await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  waiter.locks.acquire("k", { ttlMs, waitMs: 60_000 }).catch(() => undefined);
  await fixture.advance(100);
  expect(fixture.servers.map((server) => server.dump(queue))).toEqual(nothing);
  for (const server of fixture.servers) {
    server.dropMessages(null);
  }
  await fixture.advance(10_000);
  expect(fixture.servers.map((server) => server.dump(queue))).not.toContain(undefined);
});

test("changes during a loss of notifications are found as soon as notifications return", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs }));
  const waiting = waiter.locks.acquire("k", { ttlMs });
  await fixture.advance(100);
  for (const each of waiter.faults) {
    each.dropMessages((text) => text.startsWith("grant"));
  }
  await fixture.settleWithin(10, held.release());
  await fixture.advance(20);
  for (const each of waiter.faults) {
    each.dropMessages(null);
    each.dropSubscription();
  }
  expect(await fixture.settleWithin(10, waiting)).toMatchObject({ key: "k" });
});

test("queue entries of one moment differ, and are in the order of the callers", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  const { read } = waiter.locks.readWrite("k"); // the callers do not share a local queue
  await fixture.settleWithin(10, holder.locks.readWrite("k").write.acquire({ ttlMs }));
  for (let reader = 0; reader < 3; reader += 1) {
    read.acquire({ ttlMs }).catch(() => undefined);
  }
  await fixture.advance(10);
  const members = fixture.servers[0]?.dump(queue)?.value as readonly (readonly [string, number])[];
  expect(members).toHaveLength(3);
  expect(new Set(members.map(([, ticket]) => ticket)).size).toBe(3);
});

/** The nodes grant the lock, and all replies are lost. */
async function acquireWithoutReplies(fixture: QuorumFixture, { locks, faults }: QuorumClient): Promise<void> {
  for (const each of faults) {
    each.dropReply(({ args }) => commandText(args)[0] === "acquire");
  }
  const refused = locks.acquire("k", { ttlMs, waitMs: 100 }).catch((error: unknown) => error);
  expect(await fixture.settleWithin(110, refused)).toMatchObject({
    code: "quorum-not-reached",
    outcome: "unknown",
  });
  for (const each of faults) {
    each.dropReply(0);
  }
  await fixture.advance(1_000);
}
