import { ServerClocks, waitUntil } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { assertHeld, postgres, type PostgresQuery } from "holdfast/postgres";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";

import {
  inTransaction,
  onPostgres,
  startPostgres,
  startStandby,
  type PostgresServer,
} from "../../support/postgres-server.ts";
import { hasClocks } from "../../support/servers.ts";

onPostgres("a failover to a standby", () => {
  let primary: PostgresServer;
  let standby: PostgresServer;
  let pools: [pg.Pool, pg.Pool];
  /** The server that the clients reach, as by a virtual address. */
  let current: pg.Pool;
  let clocks: ServerClocks | undefined;
  let here: Locks;
  let there: Locks;

  function poolOf({ url }: PostgresServer): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max: 5 });
    pool.on("error", () => undefined);
    return pool;
  }

  beforeEach(async () => {
    primary = await startPostgres();
    clocks = hasClocks ? await ServerClocks.make(1) : undefined;
    standby = await startStandby(primary, clocks?.clocks[0]?.env);
    pools = [poolOf(primary), poolOf(standby)];
    [current] = pools;
    const query: PostgresQuery = async (sql, params) => (await current.query(sql, params)).rows as object[];
    [here, there] = [createLocks(postgres(query)), createLocks(postgres(query))];
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
    await Promise.all(pools.map((pool) => pool.end()));
    await Promise.all([primary.stop(), standby.stop()]);
    await clocks?.[Symbol.asyncDispose]();
  });

  async function promote(): Promise<void> {
    await primary.crash();
    [, current] = pools;
    await current.query("SELECT pg_promote()");
  }

  async function hasReceivedAll(): Promise<boolean> {
    const { rows } = await pools[0].query<{ position: string }>(
      "SELECT pg_current_wal_flush_lsn() AS position",
    );
    const { rows: replayed } = await pools[1].query<{ isDone: boolean }>(
      `SELECT pg_last_wal_replay_lsn() >= $1 AS "isDone"`,
      [rows[0]?.position],
    );
    return replayed[0]?.isDone === true;
  }

  test("that has the last writes keeps a lease, its waiters and the order of fencing tokens", async () => {
    const lease = await here.acquire("key", { ttlMs: 20_000 });
    const waiting = there.acquire("key", { waitMs: 30_000 });
    await waitUntil(async () => (await here.inspect("key")).waiterCount === 1, "the other waits");
    await waitUntil(hasReceivedAll, "the standby has received everything");
    await promote();
    await lease.extend();
    expect(await there.tryAcquire("key")).toBeNull();
    expect(await lease.release()).toBe(true);
    expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test.skipIf(!hasClocks)(
    "whose clock is ahead ends no valid lease, with `maxClockDifferenceMs`",
    async () => {
      const query: PostgresQuery = async (sql, params) => (await current.query(sql, params)).rows as object[];
      const locks = [1, 2].map(() => createLocks(postgres(query, { maxClockDifferenceMs: 5_000 })));
      clocks?.clocks[0]?.set({ aheadMs: 5_000 });
      const lease = await locks[0]?.acquire("key", { ttlMs: 4_000, renew: false });
      await waitUntil(hasReceivedAll, "the standby has received everything");
      await promote();
      const next = await locks[1]?.acquire("key", { waitMs: 30_000 });
      expect(next).toBeDefined();
      expect(lease?.remainingMs()).toBe(0);
      await Promise.all(locks.map((one) => one.close()));
    },
  );

  test("without the last writes loses the grant, and its holder can neither commit nor extend", async () => {
    await here.acquire("warm").then((warm) => warm.release());
    await waitUntil(hasReceivedAll, "the standby has received everything");
    await pools[1].query("ALTER SYSTEM SET primary_conninfo = ''");
    await pools[1].query("SELECT pg_reload_conf()");
    await waitUntil(async () => {
      const { rows } = await pools[0].query("SELECT FROM pg_stat_replication");
      return rows.length === 0;
    }, "the standby receives nothing more");
    const lease = await here.acquire("key", { ttlMs: 20_000, renew: false });
    await promote();
    const second = await there.acquire("key");
    lease.throwIfLost(); // two holders: the guarantee is that of the database
    expect(second.fencingToken).toBeGreaterThan(lease.fencingToken);
    const fenced = inTransaction(current, (client) => assertHeld(client, lease));
    await expect(fenced).rejects.toMatchObject({ code: "lease-lost" });
    await inTransaction(current, (client) => assertHeld(client, second));
    await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost" });
    expect(lease.signal.aborted).toBe(true);
  });

  test("that is not promoted yet delays requests, which a standby refuses", async () => {
    await here.acquire("warm").then((warm) => warm.release());
    await waitUntil(hasReceivedAll, "the standby has received everything");
    await primary.crash();
    [, current] = pools;
    await expect(here.tryAcquire("key")).rejects.toMatchObject({
      code: "engine-unavailable",
      retryable: true,
    });
    const waiting = here.acquire("key", { waitMs: 30_000 });
    await current.query("SELECT pg_promote()");
    await (await waiting).release();
  });
});
