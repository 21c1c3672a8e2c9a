import { isLockError } from "holdfast";
import {
  RedlockMultiSemaphore,
  RedlockMutex,
  RedlockSemaphore,
  TimeoutError,
} from "holdfast/compat/redis-semaphore";
import * as original from "redis-semaphore";
import { expect, test } from "vitest";

import { connect, onLongUpQuorum, startLongUpNodes, type QuorumNode } from "../../support/quorum-servers.ts";
import { waitUntil } from "@holdfast/test-kit";

onLongUpQuorum("RedlockMutex of holdfast/compat/redis-semaphore", () => {
  function clientsOf(nodes: readonly QuorumNode[]): ReturnType<typeof connect>[] {
    return nodes.map((node) => connect(node));
  }

  async function heldOn(nodes: readonly QuorumNode[], key: string): Promise<number> {
    const held = await Promise.all(nodes.map(({ direct }) => direct.exists(`mutex:${key}`)));
    return held.reduce((sum, each) => sum + each, 0);
  }

  test("holds a majority from acquire to release", async () => {
    const nodes = await startLongUpNodes(3);
    const mutex = new RedlockMutex(clientsOf(nodes), "key");
    await mutex.acquire();
    expect(mutex.isAcquired).toBe(true);
    expect(await heldOn(nodes, "key")).toBeGreaterThanOrEqual(2);
    await mutex.release();
    await waitUntil(async () => (await heldOn(nodes, "key")) === 0, "all nodes are free");
  });

  test("excludes RedlockMutex of redis-semaphore, and is excluded by it", async () => {
    const nodes = await startLongUpNodes(3);
    const clients = clientsOf(nodes);
    const others = clientsOf(nodes);
    const [own, old] = [new RedlockMutex(clients, "key"), new original.RedlockMutex(others, "key")];
    const impatient = { acquireTimeout: 200 };
    await own.acquire();
    expect(await new original.RedlockMutex(others, "key", impatient).tryAcquire()).toBe(false);
    await own.release();
    expect(await old.tryAcquire()).toBe(true);
    await expect(new RedlockMutex(clients, "key", impatient).acquire()).rejects.toThrow(TimeoutError);
    await old.release();
    const next = new RedlockMutex(clients, "key");
    expect(await next.tryAcquire()).toBe(true);
    await next.release();
  });

  test("works without a minority, and reports a majority that is down as not acquired", async () => {
    const nodes = await startLongUpNodes(3);
    const clients = clientsOf(nodes);
    const first = new RedlockMutex(clients, "key");
    await first.acquire();
    await first.release();
    await nodes[0]?.kill();
    const other = new RedlockMutex(clientsOf(nodes), "other", { onLockLost: () => undefined });
    await other.acquire();
    await nodes[1]?.kill();
    const mutex = new RedlockMutex(clients, "key", { acquireTimeout: 300 });
    expect(await mutex.tryAcquire()).toBe(false);
    const failure = await mutex.acquire().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TimeoutError);
    expect(isLockError((failure as Error).cause, "quorum-not-reached")).toBe(true);
  });

  test("a release without a majority resolves", async () => {
    const nodes = await startLongUpNodes(3);
    const mutex = new RedlockMutex(clientsOf(nodes), "key", { onLockLost: () => undefined });
    await mutex.acquire();
    await Promise.all(nodes.map((node) => node.kill()));
    await mutex.release();
    expect(mutex.isAcquired).toBe(false);
  });

  test("a semaphore is refused", () => {
    expect(() => new RedlockSemaphore([], "key", 2)).toThrow("use Semaphore on one server");
    expect(() => new RedlockMultiSemaphore([], "key", 2, 1)).toThrow("use Semaphore on one server");
  });
});
