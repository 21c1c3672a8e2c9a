import type { Lease, Locks } from "holdfast";
import { expect, test } from "vitest";

import { counterKey } from "../../../../src/drivers/redis/protocol/keys.ts";
import { clock, onSingleServer, pass, process, server, within } from "../../../support/single-server.ts";

// One server. A lease goes from one caller of a process to another through the server.

const ttlMs = 30_000;
const withoutHandover = { handover: { max: 0, maxMs: 0 } };

onSingleServer();

test("the next caller of the process gets the lock by the reply of the release, without a notification", async () => {
  const locks = await process(server.connect(), withoutHandover);
  const held = await within(10, locks.acquire("k", { ttlMs }));
  const next = locks.acquire("k", { ttlMs });
  await pass(10);
  server.failPublish(true);
  await within(10, held.release());
  const lease = await within(10, next);
  expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
});

test.each([ttlMs, 2_000])(
  "other processes soon see the reason of a caller that got the lock from the queue, with a TTL of %i ms",
  async (ownTtlMs) => {
    const [locks, others] = [await process(server.connect(), withoutHandover), await process()];
    for (const [here, next] of [
      [locks, locks],
      [others, locks],
    ] as const) {
      const held = await within(10, here.acquire("k", { ttlMs }));
      const waiting = next.acquire("k", { ttlMs: ownTtlMs, reason: "maintenance" });
      await pass(10);
      await within(10, held.release());
      const lease = await within(10, waiting);
      await pass(10);
      const { holders } = await within(10, others.inspect("k"));
      expect(holders).toMatchObject([{ reason: "maintenance" }]);
      expect(await within(10, lease.release())).toBe(true);
    }
  },
);

test("a release with a next caller is not refused by a full queue: the others get their turn, and then the next caller", async () => {
  const locks = await process(server.connect(), withoutHandover, { maxQueue: 1 });
  const others = await process(server.connect(), {}, { maxQueue: 1 });
  const held = await within(10, locks.acquire("k", { ttlMs }));
  const other = others.acquire("k", { ttlMs });
  await pass(10);
  const next = locks.acquire("k", { ttlMs });
  await pass(10);
  await within(10, held.release());
  await within(10, (await within(10, other)).release());
  expect((await within(10, next)).key).toBe("k");
});

test("a lease that another process has adopted and releases goes to a caller of its maker by notification", async () => {
  const [maker, adopter] = [await process(), await process()];
  const held = await within(10, maker.acquire("k", { ttlMs }));
  const next = maker.acquire("k", { ttlMs });
  await pass(10);
  const adopted = await within(10, adopter.adopt(held.transfer()));
  await pass(100); // the next caller is queued now
  await within(10, adopted.release());
  expect((await within(50, next)).fencingToken).toBeGreaterThan(held.fencingToken);
});

test("while the server's counter is far ahead of its time no number is used twice", async () => {
  const [locks, others] = [await process(), await process()];
  server.set(counterKey(), String((clock.wall() + 3_600_000) * 1_000));
  const tokens: bigint[] = [];
  const use = async (own: Locks): Promise<void> => {
    const lease: Lease = await own.acquire("k", { ttlMs });
    tokens.push(lease.fencingToken);
    await lease.release();
  };
  const uses = [locks, others, locks, locks, others, locks].map(use);
  await within(1_000, Promise.all(uses));
  expect(new Set(tokens).size).toBe(uses.length);
});
