import { expect, test } from "vitest";

import { Stage, type Side } from "../../../support/quorum-fixture.ts";
import { said } from "../../../support/diagnostics-log.ts";

// What becomes of that of which nobody was told.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
const nothing = [undefined, undefined, undefined];

test("what was granted without an answer is taken back when the caller gives up", async () => {
  const stage = new Stage();
  const { locks, faults } = await stage.side();
  await giveUp(stage, { locks, faults });
  expect(stage.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
});

test("who was never heard to hear takes no place in a queue", async () => {
  const stage = new Stage();
  const holder = await stage.side();
  for (const server of stage.servers) {
    server.dropMessages(() => true);
  }
  const waiter = await stage.side();
  await stage.within(10, holder.locks.acquire("k", { ttlMs }));
  waiter.locks.acquire("k", { ttlMs, waitMs: 60_000 }).catch(() => undefined);
  await stage.pass(100);
  expect(stage.servers.map((server) => server.dump(queue))).toEqual(nothing);
  for (const server of stage.servers) {
    server.dropMessages(null);
  }
  await stage.pass(10_000);
  expect(stage.servers.map((server) => server.dump(queue))).not.toContain(undefined);
});

test("what was missed while messages were lost is found as soon as they are back", async () => {
  const stage = new Stage();
  const [holder, waiter] = [await stage.side(), await stage.side()];
  const held = await stage.within(10, holder.locks.acquire("k", { ttlMs }));
  const waiting = waiter.locks.acquire("k", { ttlMs });
  await stage.pass(100);
  for (const each of waiter.faults) {
    each.dropMessages((text) => text.startsWith("grant"));
  }
  await stage.within(10, held.release());
  await stage.pass(20);
  for (const each of waiter.faults) {
    each.dropMessages(null);
    each.dropSubscription();
  }
  expect(await stage.within(10, waiting)).toMatchObject({ key: "k" });
});

test("places that are asked for at one moment differ, and stand in the order of the callers", async () => {
  const stage = new Stage();
  const [holder, waiter] = [await stage.side(), await stage.side()];
  const { read } = waiter.locks.readWrite("k"); // its callers do not stand in a local line
  await stage.within(10, holder.locks.readWrite("k").write.acquire({ ttlMs }));
  for (let reader = 0; reader < 3; reader += 1) {
    read.acquire({ ttlMs }).catch(() => undefined);
  }
  await stage.pass(10);
  const members = stage.servers[0]?.dump(queue)?.value as readonly (readonly [string, number])[];
  expect(members).toHaveLength(3);
  expect(new Set(members.map(([, ticket]) => ticket)).size).toBe(3);
});

/** It is granted, and nobody is told. */
async function giveUp(stage: Stage, { locks, faults }: Side): Promise<void> {
  for (const each of faults) {
    each.dropReply(({ args }) => said(args)[0] === "acquire");
  }
  const refused = locks.acquire("k", { ttlMs, waitMs: 100 }).catch((error: unknown) => error);
  expect(await stage.within(110, refused)).toMatchObject({ code: "quorum-not-reached", outcome: "unknown" });
  for (const each of faults) {
    each.dropReply(0);
  }
  await stage.pass(1_000);
}
