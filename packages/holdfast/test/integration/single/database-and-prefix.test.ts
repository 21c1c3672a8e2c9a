import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { connect, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

const ttlMs = 60_000;
const db = 3;
const keyPrefix = "app:";

onSharedRedis("a client", () => {
  test("the client's own database and prefix are respected: its locks are there, and nowhere else", async () => {
    const server = await ownServer();
    const own = open(connect(server.port, { db, keyPrefix }));
    await warmUp(own);
    await server.client().flushall();
    const key = newKey();
    const lease = await own.acquire(key, { ttlMs });
    for (let database = 0; database < 16; database += 1) {
      const keys = await server.client({ db: database }).keys("*");
      expect(keys.sort()).toEqual(database === db ? [`${keyPrefix}lock:${key}`, "holdfast:fence"] : []);
    }
    const page = await own.admin.list();
    expect(page.locks.map((lock) => lock.key)).toEqual([key]);
    expect(await lease.release()).toBe(true);
    expect(await server.client({ db }).exists(`${keyPrefix}lock:${key}`)).toBe(0);
  });

  // Channels span all databases, so a release here must not serve a waiter there.
  test.each([
    ["another database", { db: 0, keyPrefix }],
    ["another prefix", { db, keyPrefix: "other:" }],
    ["no prefix", { db }],
  ])("the client's own database and prefix make a lock of its own beside %s", async (_what, elsewhere) => {
    const server = await ownServer();
    const [holder, waiter] = [0, 1].map(() => open(connect(server.port, { db, keyPrefix })));
    const other = open(connect(server.port, elsewhere));
    if (!holder || !waiter) {
      throw new Error("both of them");
    }
    await Promise.all([holder, waiter, other].map(warmUp));
    const key = newKey();
    const held = await holder.acquire(key, { ttlMs });
    const theirs = await other.tryAcquire(key, { ttlMs });
    let got: Lease | undefined;
    const waiting = waiter.acquire(key, { ttlMs }).then((lease) => (got = lease));
    await waitUntil(async () => (await holder.inspect(key)).waiterCount === 1, "the waiter is queued");
    expect((await other.inspect(key)).waiterCount).toBe(0);
    expect(await theirs?.release()).toBe(true);
    expect((await other.inspect(key)).holders).toEqual([]);
    expect([got, (await holder.inspect(key)).waiterCount]).toEqual([undefined, 1]);
    expect(await held.release()).toBe(true);
    expect((await waiting).fencingToken).toBeGreaterThan(held.fencingToken);
    expect(await got?.release()).toBe(true);
  });
});
