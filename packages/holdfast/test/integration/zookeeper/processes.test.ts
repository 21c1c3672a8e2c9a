import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { endProcess } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { zookeeper } from "holdfast/zookeeper";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../support/zookeeper-server.ts";

const program = fileURLToPath(new URL("../../support/url-worker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../../dist/index.js", import.meta.url));

onZooKeeper("processes with leases in ZooKeeper:", () => {
  let server: ZooKeeperServer;
  let here: Locks;
  let worker: ChildProcess;

  beforeAll(async () => {
    if (!existsSync(built)) {
      throw new Error("The library is not built: run `npm run build`");
    }
    server = await startZooKeeper();
  });

  afterAll(async () => {
    await server.stop();
  });

  beforeEach(async () => {
    here = createLocks(zookeeper(server.address));
    worker = fork(program, [`zookeeper://${server.address}?sessionTimeoutMs=1000`]);
    await once(worker, "message");
  });

  afterEach(async () => {
    worker.kill("SIGCONT");
    await endProcess(worker);
    await here.close();
  });

  interface Report {
    readonly acquired?: string;
    readonly fencingToken?: string;
    readonly lost?: string;
    readonly isValid?: boolean;
    readonly released?: boolean;
  }

  async function report(): Promise<Report> {
    const [message] = (await once(worker, "message")) as [Report];
    return message;
  }

  async function heldByWorker(key: string, ttlMs: number): Promise<bigint> {
    worker.send({ key, options: { ttlMs } });
    return BigInt((await report()).fencingToken ?? "0");
  }

  test("the lock of a killed process goes to a waiter", async () => {
    const killed = await heldByWorker("killed", 2_000);
    const next = here.acquire("killed", { waitMs: 60_000 });
    await expect.poll(async () => (await here.inspect("killed")).waiterCount).toBe(1);
    worker.kill("SIGKILL");
    expect((await next).fencingToken).toBeGreaterThan(killed);
  });

  test("the lock of a killed process goes to a later waiter", async () => {
    const killed = await heldByWorker("killed before", 1_000);
    const exited = once(worker, "exit");
    worker.kill("SIGKILL");
    await exited;
    const next = await here.acquire("killed before", { waitMs: 60_000 });
    expect(next.fencingToken).toBeGreaterThan(killed);
  });

  test("a process that was frozen knows its loss, and cannot disturb the next holder", async () => {
    const frozen = await heldByWorker("frozen", 1_000);
    worker.kill("SIGSTOP");
    const next = await here.acquire("frozen", { waitMs: 60_000 });
    expect(next.fencingToken).toBeGreaterThan(frozen);
    worker.kill("SIGCONT");
    expect(await report()).toEqual({ lost: "frozen", isValid: false, released: false });
    await next.extend();
    expect(await here.checkFence("frozen", next.fencingToken)).toBe("current");
    expect(await next.release()).toBe(true);
  });

  test("a frozen waiter loses its turn", async () => {
    const lease = await here.acquire("turn", { ttlMs: 60_000 });
    worker.send({ key: "turn", options: { waitMs: 60_000 } });
    await expect.poll(async () => (await here.inspect("turn")).waiterCount).toBe(1);
    const there = createLocks(zookeeper(server.address));
    const next = there.acquire("turn", { waitMs: 60_000 });
    await expect.poll(async () => (await here.inspect("turn")).waiterCount).toBe(2);
    worker.kill("SIGSTOP");
    await lease.release();
    expect(await (await next).release()).toBe(true);
    await there.close();
  });
});
