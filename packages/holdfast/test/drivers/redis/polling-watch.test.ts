import { createLocks, type LockEvent, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import { limitMs, startProxy, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../support/servers.ts";

onRedis("watches of Redis", () => {
  let server: RedisServer;
  const intervalMs = 500;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(() => server.stop());

  function open(context: TestContext, port = server.port): Locks {
    const client = server.client({ port });
    const locks = createLocks(redis(client));
    context.onTestFinished(() => locks.close());
    return locks;
  }

  async function scans(): Promise<number> {
    return Number(/cmdstat_scan:calls=(\d+)/.exec(await server.client().info("commandstats"))?.[1] ?? 0);
  }

  async function next(events: AsyncIterator<LockEvent>): Promise<LockEvent> {
    const { value, done } = await events.next();
    expect(done).toBe(false);
    return value as LockEvent;
  }

  test("many watches of a prefix cost the server one scan at a time, and each has its own snapshot", async (context) => {
    const locks = open(context);
    await locks.acquire("shared:a");
    void open(context)
      .acquire("shared:a", { waitMs: Infinity })
      .catch(() => undefined);
    const isWaitedFor = async (): Promise<boolean> =>
      (await locks.inspect("shared:a")).oldestWaitMs !== undefined;
    await waitUntil(isWaitedFor, "one waits, so that the state changes with time");
    const abort = new AbortController();
    const watches = [];
    for (let i = 0; i < 20; i += 1) {
      const events = locks.admin
        .watch({ prefix: "shared:" }, { signal: abort.signal })
        [Symbol.asyncIterator]();
      watches.push(events);
    }
    const snapshots = await Promise.all(watches.map(next));
    expect(snapshots.map(({ type, key }) => `${type} ${key}`)).toEqual(
      watches.map(() => "snapshot shared:a"),
    );
    const changed = Promise.all(watches.map(next));
    const begun = performance.now();
    const before = await scans();
    await waitUntil(async () => (await scans()) > before + 2, "both watches continue");
    expect((await scans()) - before).toBeLessThanOrEqual(2 + (performance.now() - begun) / intervalMs);
    await locks.acquire("shared:b");
    const changes = await changed;
    expect(changes.map(({ type, key }) => `${type} ${key}`)).toEqual(watches.map(() => "changed shared:b"));
    abort.abort();
  });

  test("the snapshot of a watch that comes later is not older than the watch", async (context) => {
    const locks = open(context);
    const abort = new AbortController();
    const { signal } = abort;
    await locks.acquire("late:a");
    const first = locks.admin.watch({ prefix: "late:" }, { signal })[Symbol.asyncIterator]();
    expect(await next(first)).toMatchObject({ type: "snapshot", key: "late:a" });
    await locks.acquire("late:b");
    const second = locks.admin.watch({ prefix: "late:" }, { signal })[Symbol.asyncIterator]();
    const found = [await next(second), await next(second)];
    expect(found.map(({ type, key }) => `${type} ${key}`).sort()).toEqual([
      "snapshot late:a",
      "snapshot late:b",
    ]);
    expect(await next(first)).toMatchObject({ type: "changed", key: "late:b" });
    abort.abort();
  });

  test("a watcher ends with its last watch, and the end of one watch ends no other", async (context) => {
    const locks = open(context);
    const aborts = [new AbortController(), new AbortController()];
    await locks.acquire("leaving:a");
    const watches = aborts.map(({ signal }) =>
      locks.admin.watch({ prefix: "leaving:" }, { signal })[Symbol.asyncIterator](),
    );
    await Promise.all(watches.map(next));
    const [first, second] = watches;
    const ended = first?.next();
    const last = second?.next();
    aborts[0]?.abort();
    expect(await ended).toMatchObject({ done: true });
    const before = await scans();
    await waitUntil(async () => (await scans()) > before + 1, "the other watch continues");
    aborts[1]?.abort();
    expect(await last).toMatchObject({ done: true });
    const after = await scans();
    await new Promise((resolve) => setTimeout(resolve, 2 * intervalMs + 200));
    expect((await scans()) - after).toBeLessThanOrEqual(1);
  });

  test("a watcher pauses for twenty times the duration of a scan", async (context) => {
    const proxy = await startProxy(server.port);
    context.onTestFinished(() => proxy.stop());
    const locks = open(context, proxy.port);
    await locks.acquire("slow:a");
    const lookMs = 40; // at least, because each direction is delayed by half of it
    proxy.delay(lookMs / 2);
    const abort = new AbortController();
    const before = await scans();
    const begun = performance.now();
    const events = locks.admin.watch({ prefix: "slow:" }, { signal: abort.signal })[Symbol.asyncIterator]();
    await next(events);
    const more = next(events);
    await waitUntil(async () => (await scans()) > before + 1, "the watcher scans again", limitMs(30_000));
    expect(performance.now() - begun).toBeGreaterThanOrEqual(20 * lookMs);
    await locks.acquire("slow:b");
    expect(await more).toMatchObject({ type: "changed", key: "slow:b" });
    abort.abort();
  });
});
