import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { Queue, QueueEvents, Worker } from "bullmq";
import { Deferred, Effect, Exit, Fiber, Layer } from "effect";
import { createLocks, isLockError, type Lease, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { onPostgres, startPostgres } from "../../../packages/holdfast/test/support/postgres-server.ts";
import { onRedis } from "../../../packages/holdfast/test/support/servers.ts";
import { locksLayer, LocksService } from "../src/effect-locks.ts";
import { chargeServer, idempotent, idempotentRow, replyTable } from "../src/idempotent.ts";
import { HoldfastLockingProvider } from "../src/medusa.ts";
import { onePerCustomer } from "../src/one-per-customer.ts";
import { commandLine, linesOf, program, shell } from "./support/shell.ts";

onPostgres("the migrations", () => {
  test("of three pods are applied once, and the lines of the page run", async () => {
    const server = await startPostgres();
    const folder = await mkdtemp(join(tmpdir(), "holdfast-migrations-"));
    try {
      const migrate = fileURLToPath(new URL("../dist/migrate.js", import.meta.url));
      const pods = [1, 2, 3].map(() =>
        spawn(process.execPath, [migrate, server.url], {
          env: { ...process.env, NODE_OPTIONS: "" },
          stdio: "inherit",
        }),
      );
      const codes = await Promise.all(pods.map((pod) => once(pod, "exit")));
      expect(codes.map(([code]) => code as number)).toEqual([0, 0, 0]);
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const { rows } = await client.query("SELECT balance FROM account");
      await client.end();
      expect(rows).toEqual([{ balance: 11 }]);
      await commandLine(folder);
      await program(folder, "npx", `echo "$* $HOLDFAST_LOCK_KEY" >> log`);
      const lines = await linesOf("docs/recipes/migrations.md");
      const runs = lines.map((line) => shell(folder, line, { DATABASE_URL: server.url }).code);
      expect(await Promise.all(runs)).toEqual([0, 0]);
      const log = await readFile(join(folder, "log"), "utf8");
      expect(log.trim().split("\n").sort()).toEqual([
        "drizzle-kit migrate migrate",
        "prisma migrate deploy migrate",
      ]);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await server.stop();
    }
  });
});

onPostgres("the recipe with a unique row", () => {
  test("commits an effect once, however many requests run, and again only after an error", async () => {
    const server = await startPostgres();
    const pool = new pg.Pool({ connectionString: server.url });
    pool.on("error", () => undefined);
    try {
      await pool.query(`${replyTable}; CREATE TABLE charge (id text)`);
      let isDown = true;
      const charge = (): Promise<string> =>
        idempotentRow(pool, "request-1", async (client) => {
          await client.query("INSERT INTO charge VALUES ('one')");
          if (isDown) throw new Error("the bank is down");
          return "receipt";
        });
      await expect(charge()).rejects.toThrow("the bank is down");
      const cut = idempotentRow(pool, "request-1", async (client) => {
        await client.query("INSERT INTO charge VALUES ('one')");
        const connection = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await pool.query("SELECT pg_terminate_backend($1)", [connection.rows[0]!.pid]);
        await once(client, "end");
        return "receipt";
      });
      await expect(cut).rejects.toThrow();

      isDown = false;
      const replies = await Promise.all([1, 2, 3, 4, 5, 6].map(charge));
      expect(new Set(replies)).toEqual(new Set(["receipt"]));
      expect((await pool.query("SELECT * FROM charge")).rowCount).toBe(1);
    } finally {
      await pool.end();
      await server.stop();
    }
  });
});

onRedis("the recipe", () => {
  let server: RedisServer;
  const opened: { locks: Locks; client: Redis }[] = [];
  /** One process. */
  function open(): { locks: Locks; client: Redis } {
    const client = new Redis(server.port);
    opened.push({ client, locks: createLocks(redis(client)) });
    return opened.at(-1)!;
  }
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    for (const { locks, client } of opened.splice(0)) {
      await locks.close();
      client.disconnect();
    }
  });
  afterAll(() => server.stop());

  test("for BullMQ runs one job per customer at a time, and jobs of other customers beside it", async () => {
    const connection = { host: "127.0.0.1", port: server.port };
    const running = new Map<string, number>();
    const [most, mostOfOne] = [[] as number[], [] as number[]];
    const workers = [1, 2].map(() => {
      const process = onePerCustomer<{ customer: string }, string>(open().locks, async ({ data }) => {
        running.set(data.customer, (running.get(data.customer) ?? 0) + 1);
        mostOfOne.push(running.get(data.customer) as number);
        most.push([...running.values()].reduce((sum, count) => sum + count));
        await pause(30);
        running.set(data.customer, (running.get(data.customer) as number) - 1);
        return data.customer;
      });
      return new Worker("orders", process, { connection, concurrency: 3 });
    });
    const [queue, events] = [new Queue("orders", { connection }), new QueueEvents("orders", { connection })];
    try {
      const customers = ["Ada", "Ada", "Ada", "Ada", "Bob", "Bob", "Cyd"];
      const jobs = await queue.addBulk(customers.map((customer) => ({ name: "order", data: { customer } })));
      const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
      expect(results).toEqual(customers);
      expect(Math.max(...mostOfOne)).toBe(1);
      expect(Math.max(...most)).toBeGreaterThan(1);
    } finally {
      await Promise.all([...workers, queue, events].map((each) => each.close()));
    }
  });

  test("for HTTP charges once for each idempotency key, on two servers", async () => {
    const charged: string[] = [];
    let isDown = true;
    const servers = [1, 2].map(() => {
      const { locks, client } = open();
      return chargeServer(locks, client, async (key, lease) => {
        if (isDown) throw new Error("the bank is down");
        charged.push(key);
        await pause(50, undefined, { signal: lease.signal });
        return JSON.stringify({ receipt: charged.length });
      }).listen(0, "127.0.0.1");
    });
    try {
      await Promise.all(servers.map((each) => once(each, "listening")));
      const post = async (index: number): Promise<[number, string]> => {
        const { port } = servers[index % 2]!.address() as AddressInfo;
        const headers = { "idempotency-key": "request-1" };
        const reply = await fetch(`http://127.0.0.1:${port}/charges`, { method: "POST", headers });
        return [reply.status, await reply.text()];
      };
      expect((await post(0))[0]).toBe(503);
      isDown = false;
      const replies = await Promise.all([0, 1, 2, 3, 4, 5].map(post));
      const receipt = [201, '{"receipt":1}'];
      expect(replies).toContainEqual(receipt);
      expect(replies.every(([status]) => status === 201 || status === 409)).toBe(true);
      await waitUntil(async () => (await post(1))[0] !== 409, "the first request has ended");
      expect([await post(0), await post(1), charged]).toEqual([receipt, receipt, ["request-1"]]);
    } finally {
      for (const each of servers) each.close();
    }
  });

  test("for HTTP runs work again whose lease is lost, and keeps the first reply", async () => {
    const [first, second] = [open(), open()];
    let end: (reply: string) => void = () => undefined;
    let lost: Promise<string | undefined> = Promise.resolve(undefined);
    const { key, fencingToken } = await new Promise<Lease>((begin) => {
      lost = idempotent(first, "request-2", (lease) => {
        begin(lease);
        return new Promise((resolve) => (end = resolve));
      });
    });
    await second.locks.admin.breakLock(key, { fencingToken, reason: "test" });
    expect(await idempotent(second, "request-2", async () => "second run")).toBe("second run");
    end("first run");
    expect(await lost).toBe("second run");
  });

  test("for Medusa has all keys or none, and releases them by their owner from another process", async () => {
    const [here, there] = [open(), open()].map(({ locks }) => new HoldfastLockingProvider(locks)) as [
      HoldfastLockingProvider,
      HoldfastLockingProvider,
    ];
    await here.acquire(["cart", "stock"], { ownerId: "one", expire: 60 });
    await here.acquire("cart", { ownerId: "one", expire: 90 });
    await expect(here.acquire(["price", "cart"], { ownerId: "two" })).rejects.toMatchObject({
      code: "wait-timeout",
    });
    await there.acquire("price", { ownerId: "two" }); // the failed call holds nothing
    expect(await there.release("cart", { ownerId: "two" })).toBe(false);
    expect(await here.release("cart", { ownerId: "one" })).toBe(true);
    expect(await there.release("stock", { ownerId: "one" })).toBe(true);
    await here.releaseAll({ ownerId: "two" });
    const all = (): Promise<boolean> =>
      there.acquire(["cart", "stock", "price"]).then(
        () => true,
        () => false,
      );
    await waitUntil(all, "the other process has got the message that its lock was broken");
    expect(await here.release(["cart", "stock", "price"])).toBe(true);

    const order: string[] = [];
    const job = (name: string, keys: string[]): Promise<void> =>
      here.execute(keys, async (signal) => {
        order.push(`${name} begins`);
        await pause(20, undefined, { signal: signal as AbortSignal });
        order.push(`${name} ends`);
      });
    await Promise.all([job("a", ["x", "y"]), job("b", ["y", "x"])]);
    expect(order).toEqual(["a begins", "a ends", "b begins", "b ends"]);
    await there.acquire("x", { ownerId: "three" });
    await expect(here.execute("x", async () => 1, { timeout: 1 })).rejects.toMatchObject({
      code: "wait-timeout",
    });
    await there.releaseAll();
  });

  test("for Effect releases at the end, at an interruption and at a loss, and an interrupted wait leaves the queue", async () => {
    const { locks } = open();
    const layer = locksLayer(async () => createLocks(redis(opened[0]!.client)));
    const program = Effect.gen(function* () {
      const { withLock } = yield* LocksService;
      expect(yield* withLock("k", {}, ({ key }) => Effect.succeed(key))).toBe("k");
      expect(yield* Effect.flip(withLock("k", {}, () => Effect.fail("mine" as const)))).toBe("mine");

      const held = yield* Deferred.make<bigint>();
      const hold = withLock("k", { ttlMs: 600 }, (lease) =>
        Effect.andThen(Deferred.succeed(held, lease.fencingToken), Effect.never),
      );
      const holder = yield* Effect.forkChild(hold);
      const fencingToken = yield* Deferred.await(held);
      const refused = yield* Effect.flip(withLock("k", { waitMs: 0 }, () => Effect.void));
      expect(isLockError(refused, "wait-timeout")).toBe(true);
      const waiter = yield* Effect.forkChild(withLock("k", { waitMs: 60_000 }, () => Effect.void));
      yield* Effect.promise(() =>
        waitUntil(async () => (await locks.inspect("k")).waiterCount === 1, "a waiter"),
      );
      yield* Fiber.interrupt(waiter);
      yield* Effect.promise(() =>
        waitUntil(async () => (await locks.inspect("k")).waiterCount === 0, "no waiter"),
      );

      yield* Effect.promise(() => locks.admin.breakLock("k", { fencingToken, reason: "test" }));
      const lost = yield* Fiber.await(holder);
      expect(Exit.isFailure(lost) && String(lost.cause)).toContain("LeaseLostError");

      const interrupted = yield* Effect.forkChild(withLock("k", {}, () => Effect.never));
      yield* Effect.promise(() =>
        waitUntil(async () => (await locks.inspect("k")).holders.length === 1, "a holder"),
      );
      yield* Fiber.interrupt(interrupted);
      expect(yield* withLock("k", { waitMs: 0 }, () => Effect.succeed("free"))).toBe("free");
    });
    await Effect.runPromise(Effect.provide(program, layer as Layer.Layer<LocksService>));
  });
});
