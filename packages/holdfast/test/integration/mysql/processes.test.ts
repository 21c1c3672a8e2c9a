import { fork, type ChildProcess } from "node:child_process";
import { on } from "node:events";
import { fileURLToPath } from "node:url";

import { waitUntil } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { mysql } from "holdfast/mysql";
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

const program = fileURLToPath(new URL("../../support/url-worker.mjs", import.meta.url));

onMariaDb("processes with leases in MySQL:", () => {
  let server: MariaDbServer;
  let pool: Pool;
  let here: Locks;
  let key: string;
  const workers: ChildProcess[] = [];

  beforeAll(async () => {
    server = await startMariaDb();
    pool = createPool({ uri: server.url });
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  beforeEach(() => {
    here = createLocks(mysql(pool));
    key = `order:${crypto.randomUUID()}`;
  });

  afterEach(async () => {
    for (const worker of workers.splice(0)) {
      worker.kill("SIGKILL");
    }
    await here.close();
  });

  async function startWorker(): Promise<{ child: ChildProcess; next(): Promise<unknown> }> {
    const child = fork(program, [server.url], { stdio: ["ignore", 2, 2, "ipc"], execArgv: [] });
    workers.push(child);
    const messages = on(child, "message");
    const next = async (): Promise<unknown> => ((await messages.next()).value as [unknown])[0];
    await next();
    return { child, next };
  }

  const isQueued = async (): Promise<boolean> => (await here.inspect(key)).waiterCount === 1;

  test("the lock of a killed process is free after the TTL, and its queue entry leaves the queue", async () => {
    const [holder, waiter] = await Promise.all([startWorker(), startWorker()]);
    holder.child.send({ key, options: { ttlMs: 2_000 } });
    expect(await holder.next()).toMatchObject({ acquired: key });
    waiter.child.send({ key, options: { waitMs: 60_000 } });
    await waitUntil(isQueued, "the waiter waits");
    waiter.child.kill("SIGKILL");
    holder.child.kill("SIGKILL");
    const lease = await here.acquire(key, { waitMs: 20_000 });
    expect((await here.inspect(key)).waiterCount).toBe(0);
    await lease.release();
  });

  test("a frozen holder learns of its loss when it continues", async () => {
    const { child, next } = await startWorker();
    child.send({ key, options: { ttlMs: 1_000 } });
    const { fencingToken } = (await next()) as { fencingToken: string };
    child.kill("SIGSTOP");
    const lease = await here.acquire(key, { waitMs: 20_000 });
    expect(lease.fencingToken).toBeGreaterThan(BigInt(fencingToken));
    child.kill("SIGCONT");
    expect(await next()).toMatchObject({ lost: key, isValid: false, released: false });
    lease.throwIfLost();
    expect(await lease.release()).toBe(true);
  });

  test("a frozen waiter loses its turn, and keeps its place", async () => {
    const { child, next } = await startWorker();
    const holder = await here.acquire(key);
    // A poll that is under way at the stop may be granted the lock, which is then held until this TTL.
    child.send({ key, options: { waitMs: 60_000, ttlMs: 5_000 } });
    await waitUntil(isQueued, "the worker waits");
    child.kill("SIGSTOP");
    const following = here.acquire(key, { waitMs: 20_000 });
    await holder.release();
    const lease = await following;
    child.kill("SIGCONT");
    await waitUntil(isQueued, "the worker waits again");
    await lease.release();
    expect(await next()).toMatchObject({ acquired: key });
  });
});
