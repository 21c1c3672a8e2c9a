import { once } from "node:events";

import { limitMs, rejection, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  shared,
  start,
  warmUp,
} from "../../support/fault-fixture.ts";

const ttlMs = 60_000;
const processes = 4;
const attempts = 200;

/** A key whose latch is deleted with the test. */
function latchKey(): string {
  const key = newKey();
  onCleanup(() => void direct.del(`lock:${key}`));
  return key;
}

onSharedRedis("latches", () => {
  test(`of ${processes} processes that each count the same ${attempts} attempts: each counts once, and all waiters are released`, async () => {
    const key = latchKey();
    const order = JSON.stringify({ key, count: attempts + 1, attempts, ttlMs });
    const workers = ["a", "b", "c", "d"].map((name) => start("latches.mjs", shared.port, name, order));
    const said = (line: RegExp): boolean =>
      workers.every(({ lines }) => lines.some((each) => line.test(each)));
    await waitUntil(() => said(/^counted/), "all attempts have counted", limitMs(60_000));
    const own = open(connect(shared.port)).latch(key, { count: attempts + 1, ttlMs });
    await rejection(own.wait({ waitMs: 0 }));
    expect(await direct.hget(`lock:${key}`, "left")).toBe("1");
    expect(workers.flatMap(({ lines }) => lines).filter((line) => line.startsWith("open"))).toEqual([]);
    const least = workers
      .flatMap(({ lines }) => lines)
      .map((line) => Number(/^counted (\d+)$/.exec(line)?.[1]));
    expect(least.every((left) => left >= 1)).toBe(true);
    const closed = Promise.all(workers.map(({ child }) => once(child, "close")));
    expect(await own.countDown()).toBe(0);
    await closed;
    expect(workers.map(({ lines }) => lines.at(-1))).toEqual(workers.map(() => "open 8"));
  });

  test("the lost reply of a count that the client sends again counts once", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const own = locks.latch(latchKey(), { count: 3, ttlMs });
    const lost = proxy.loseNextReply(/\bcountDown\b/);
    expect(await own.countDown()).toBe(2);
    await lost;
    const lostAgain = proxy.loseNextReply(/\bcountDown\b/);
    expect(await own.countDown({ attemptId: "one" })).toBe(1);
    await lostAgain;
    expect(await own.countDown({ attemptId: "one" })).toBe(1);
  });

  test("a waiter is released although its notifications are lost", async () => {
    const proxy = await ownProxy(shared);
    const here = open(connect(proxy.port));
    const there = open(connect(shared.port));
    await Promise.all([warmUp(here), warmUp(there)]);
    const key = latchKey();
    const waiting = here.latch(key, { count: 1, ttlMs }).wait({ waitMs: 30_000 });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.dropMatching(/open \d+/);
    expect(await there.latch(key, { count: 1, ttlMs }).countDown()).toBe(0);
    await waiting;
  });

  test("a waiter is released after its connections were lost", async () => {
    const proxy = await ownProxy(shared);
    const here = open(connect(proxy.port, { retryStrategy: () => 20 }));
    const there = open(connect(shared.port));
    await Promise.all([warmUp(here), warmUp(there)]);
    const key = latchKey();
    const waiting = here.latch(key, { count: 1, ttlMs }).wait({ waitMs: 30_000 });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.refuse(true);
    proxy.cut();
    expect(await there.latch(key, { count: 1, ttlMs }).countDown()).toBe(0);
    proxy.refuse(false);
    await waiting;
  });

  test("a frozen server: a count has an unknown outcome, its repeat counts once, and the waiter is released", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port), { commandTimeoutMs: 500 });
    await warmUp(locks);
    const own = locks.latch("k", { count: 2, ttlMs });
    expect(await own.countDown({ attemptId: "first" })).toBe(1);
    const waiting = own.wait({ waitMs: 30_000 });
    await waitUntil(async () => (await locks.inspect("k")).waiterCount === 1, "the waiter is queued");
    server.freeze();
    onCleanup(() => {
      server.thaw();
    });
    const { error } = await rejection(own.countDown({ attemptId: "second" }));
    expect(error).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    server.thaw();
    expect(await own.countDown({ attemptId: "second" })).toBe(0);
    await waiting;
  });

  test("a server that restarts without its data: callers that knew the latch get an error, and no waiter is released", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port, { retryStrategy: () => 50 }));
    await warmUp(locks);
    const own = locks.latch("k", { count: 2, ttlMs });
    await own.countDown();
    const waiting = rejection(own.wait({ waitMs: 30_000 }));
    await waitUntil(async () => (await locks.inspect("k")).waiterCount === 1, "the waiter is queued");
    await server.stop();
    await ownServer({ port: server.port });
    expect((await waiting).error).toMatchObject({ code: "latch-expired" });
    expect((await rejection(own.countDown())).error).toMatchObject({ code: "latch-expired" });
  });

  test("a wait keeps its process alive, closing ends it, and no residue stays", async () => {
    const key = latchKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const waiting = rejection(locks.latch(key, { count: 1, ttlMs }).wait({ waitMs: Infinity }));
    await waitUntil(async () => (await locks.inspect(key)).waiterCount === 1, "the waiter is queued");
    await locks.close();
    expect((await waiting).error).toMatchObject({ code: "closed" });
    await waitUntil(
      async () => (await direct.exists(`holdfast:queue:{lock:${key}}`)) === 0,
      "the waiter has left",
    );
  });
});
