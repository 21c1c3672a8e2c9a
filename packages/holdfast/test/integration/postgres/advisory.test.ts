import { startProxy, waitUntil, type Proxy } from "@holdfast/test-kit";
import { createLocks, type Lease, type Locks } from "holdfast";
import { postgres, type PostgresClient } from "holdfast/postgres";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { remainingAtLoss } from "../../support/loss.ts";
import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";
import { startPostgresWorker, type PostgresWorker } from "../../support/postgres-workers.ts";

/** The columns of a grant that show its binding and its last write. */
interface GrantRow {
  readonly session: string | null;
  readonly writer: string;
}

onPostgres('a driver with `mode: "advisory"`', () => {
  let server: PostgresServer;
  let proxy: Proxy;
  let admin: pg.Pool;
  /** Writes at each renewal. */
  let direct: Locks;
  const closing: (() => Promise<unknown>)[] = [];
  let key: string;

  beforeAll(async () => {
    server = await startPostgres();
    proxy = await startProxy(server.port);
    admin = new pg.Pool({ connectionString: server.url });
    admin.on("error", () => undefined);
  });

  afterAll(async () => {
    await admin.end();
    await proxy.stop();
    await server.stop();
  });

  beforeEach(() => {
    key = `order:${crypto.randomUUID()}`;
    direct = createLocks(postgres(admin));
    closing.push(() => direct.close());
  });

  afterEach(async () => {
    await Promise.all(closing.splice(0).map((close) => close()));
  });

  function open(url = server.url): Locks {
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    pool.on("error", () => undefined);
    const locks = createLocks(postgres(pool, { mode: "advisory", commandTimeoutMs: 500 }));
    closing.unshift(async () => {
      await locks.close();
      await pool.end();
    });
    return locks;
  }

  function startWorker(): PostgresWorker {
    const worker = startPostgresWorker(server.url, "advisory");
    closing.push(async () => worker.child.kill("SIGKILL"));
    return worker;
  }

  async function grantRow(): Promise<GrantRow | undefined> {
    const { rows } = await admin.query<GrantRow>(
      "SELECT session::text, xmin || '/' || ctid AS writer FROM holdfast.holders WHERE key = $1",
      [key],
    );
    return rows[0];
  }

  const isBound = async (): Promise<boolean> => typeof (await grantRow())?.session === "string";

  /** Whether a statement of this connection waits for a lock of another one. */
  async function isWaiting(client: pg.PoolClient): Promise<boolean> {
    const { processID } = client as unknown as { processID: number };
    const { rowCount } = await admin.query("SELECT FROM pg_locks WHERE pid = $1 AND NOT granted", [
      processID,
    ]);
    return rowCount !== 0;
  }

  /** Returns when the server process of the session has ended, and so no longer holds the lock of the session. */
  async function endSession(): Promise<void> {
    await admin.query(
      `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks JOIN holdfast.holders
       ON session = (classid::bigint << 32) + objid::bigint WHERE key = $1 AND locktype = 'advisory'`,
      [key],
    );
  }

  async function acquireBound(locks: Locks, ttlMs = 20_000): Promise<Lease> {
    const lease = await locks.acquire(key, { ttlMs, renew: false });
    await lease.extend();
    expect(await isBound()).toBe(true);
    return lease;
  }

  test("binds a lease to its session by the first renewal, and writes nothing at later ones", async () => {
    const locks = open();
    const lease = await locks.acquire(key, { ttlMs: 20_000, renew: false });
    expect(await isBound()).toBe(false);
    await lease.extend();
    const bound = await grantRow();
    for (let renewal = 0; renewal < 3; renewal += 1) {
      await lease.extend();
    }
    expect(await grantRow()).toEqual(bound);
    expect(lease.remainingMs()).toBeGreaterThan(15_000);
    const { holders, remainingMs } = await direct.inspect(key);
    expect(holders).toMatchObject([{ fencingToken: lease.fencingToken, remainingMs: 20_000 }]);
    expect(remainingMs).toBe(20_000);
    expect((await direct.admin.list({ prefix: key })).locks).toMatchObject([{ key, remainingMs: 20_000 }]);
    expect(await direct.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
    const next = await direct.acquire(key);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("writes a longer TTL and another owner", async () => {
    const lease = await acquireBound(open());
    const before = await grantRow();
    await lease.extend(40_000);
    const after = await grantRow();
    expect(after?.session).toBe(before?.session);
    expect(after?.writer).not.toBe(before?.writer);
    expect(lease.remainingMs()).toBeGreaterThan(30_000);
  });

  test("frees the lock after the TTL when the lease is no longer renewed", async () => {
    const lease = await acquireBound(open(), 300);
    const waiting = direct.acquire(key);
    expect(await remainingAtLoss(lease)).toBeGreaterThanOrEqual(0);
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("a break ends a bound lease at once", async () => {
    const lease = await acquireBound(open());
    await direct.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
    await direct.acquire(key);
    await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost", reason: "broken" });
  });

  test("keeps a lease whose session the server ends, and binds the lease to the next session", async () => {
    const lease = await acquireBound(open());
    const before = await grantRow();
    await endSession();
    await waitUntil(async () => {
      expect(await direct.tryAcquire(key)).toBeNull();
      await lease.extend();
      const row = await grantRow();
      return typeof row?.session === "string" && row.session !== before?.session;
    }, "the lease is bound again");
    expect(await lease.release()).toBe(true);
  });

  test("keeps a lease through a crash of the server", async () => {
    const lease = await acquireBound(open());
    await server.crash();
    await server.restart();
    await waitUntil(() => direct.tryAcquire(`${key}:other`).then(Boolean, () => false), "the server replies");
    lease.throwIfLost();
    expect(await direct.tryAcquire(key)).toBeNull();
    await waitUntil(
      () =>
        lease.extend().then(
          () => true,
          () => false,
        ),
      "the lease is extended",
    );
    expect(await lease.release()).toBe(true);
  });

  test("a session that ends waits for renewals, and a later renewal sees its end", async () => {
    const lease = await acquireBound(open());
    const old = await grantRow();
    const { rows } = await admin.query<{ token: string }>(
      "SELECT token FROM holdfast.holders WHERE key = $1",
      [key],
    );
    const fencing = String(lease.fencingToken);
    const request = { key, token: rows[0]?.token, fencing, ttlMs: 20_000, session: old?.session };
    const extend = "SELECT holdfast.extend($1)";
    const [renewing, ending] = [await admin.connect(), await admin.connect()];
    await renewing.query("BEGIN");
    await renewing.query(extend, [JSON.stringify(request)]);
    await endSession();
    const events: string[] = [];
    await ending.query("BEGIN");
    const ended = ending.query("SELECT holdfast.end_sessions($1)", [key]).then(() => events.push("end"));
    await waitUntil(() => isWaiting(ending), "the end waits");
    events.push("renewal");
    await renewing.query("COMMIT");
    await ended;
    const late = renewing.query(extend, [JSON.stringify(request)]).then(() => events.push("late renewal"));
    await waitUntil(() => isWaiting(renewing), "the late renewal waits");
    events.push("commit");
    await ending.query("COMMIT");
    await late;
    expect(events).toEqual(["renewal", "end", "commit", "late renewal"]);
    expect((await grantRow())?.writer).not.toBe(old?.writer);
    renewing.release();
    ending.release();
  });

  test("a holder without contact to the server loses its lease before another can hold the lock", async () => {
    const lease = await acquireBound(open(`postgres://holdfast@127.0.0.1:${proxy.port}/postgres`), 1_000);
    const waiting = direct.acquire(key, { waitMs: 30_000 });
    proxy.pause("requests");
    const next = await waiting;
    expect(lease.signal.aborted).toBe(true);
    proxy.resume("requests");
    next.throwIfLost();
    expect(await next.release()).toBe(true);
  });

  test("the lock of a killed process is free after the TTL", async () => {
    const worker = startWorker();
    await worker.next();
    worker.child.send({ key, options: { ttlMs: 1_000 } });
    const { fencingToken } = (await worker.next()) as { fencingToken: string };
    await waitUntil(isBound, "the lease is bound");
    worker.child.kill("SIGKILL");
    const lease = await direct.acquire(key, { waitMs: 20_000 });
    expect(lease.fencingToken).toBeGreaterThan(BigInt(fencingToken));
  });

  test("the session of a frozen process ends; the holder learns of its loss, and its transaction cannot commit", async () => {
    const worker = startWorker();
    await worker.next();
    worker.child.send({ key, options: { ttlMs: 1_000 } });
    await worker.next();
    await waitUntil(isBound, "the lease is bound");
    worker.child.kill("SIGSTOP");
    const lease = await direct.acquire(key, { waitMs: 30_000 });
    worker.child.kill("SIGCONT");
    expect(await worker.next()).toMatchObject({ lost: key, commits: "lease-lost" });
    lease.throwIfLost();
  });

  test("refuses clients that cannot open a session, and other modes", () => {
    const query: PostgresClient = async () => [];
    expect(() => postgres(query, { mode: "advisory" })).toThrow(
      'Expected `mode: "advisory"` to be used with a Pool of pg',
    );
    expect(() => postgres(admin, { mode: "row" as "lease" })).toThrow(
      'Expected `mode` to be "lease" or "advisory"',
    );
  });
});
