import { setTimeout } from "node:timers/promises";

import { createLocks, type Locks } from "holdfast";
import { assertHeld, postgres } from "holdfast/postgres";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { limitMs } from "@holdfast/test-kit";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPostgres("a connection that the program left with other settings", () => {
  let server: PostgresServer;
  let otherPool: pg.Pool;
  let there: Locks;

  beforeAll(async () => {
    server = await startPostgres();
    otherPool = new pg.Pool({ connectionString: server.url });
    there = createLocks(postgres(otherPool));
    await otherPool.query(`CREATE SCHEMA mock; CREATE ROLE tenant;
      CREATE FUNCTION mock.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2030-01-01' $$`);
  });

  afterAll(async () => {
    await there.close();
    await otherPool.end();
    await server.stop();
  });

  const settings: readonly [setting: string, max: number][] = [
    ["SET search_path = mock, pg_catalog", 1],
    ["SET client_encoding = 'LATIN1'", 1],
    ["SET extra_float_digits = -15", 1],
    ["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", 1],
    ["SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", 1],
    ["SET ROLE tenant", 1],
    ["CREATE TEMP TABLE text (a int)", 1],
    ["BEGIN", 10],
  ];

  test.each(settings)("%s: nothing depends on them (of %i connections)", async (setting, max) => {
    const pool = new pg.Pool({ connectionString: server.url, max });
    const here = createLocks(postgres(pool));
    /** Leaves all connections of the pool so. */
    const leave = async (): Promise<void> => {
      const clients = await Promise.all(Array.from({ length: max }, () => pool.connect()));
      await Promise.all(clients.map((client) => client.query(setting).catch(() => undefined)));
      clients.forEach((client) => client.release());
    };
    const key = `счёт: ${setting}`;
    const taken = `${key}, taken`;
    const before = await there.acquire(taken);
    await leave();
    expect(await here.tryAcquire(taken)).toBeNull();
    await leave();
    const lease = await here.acquire(key, { ttlMs: 15_500, renew: false, owner: "под 😀" });
    expect(await there.tryAcquire(key)).toBeNull();
    expect((await there.inspect(key)).remainingMs).toBeLessThanOrEqual(15_500);
    await leave();
    await lease.extend(15_500);
    expect(lease.remainingMs()).toBeLessThanOrEqual(15_500);
    await leave();
    const [holder] = (await here.inspect(key)).holders;
    expect(holder?.owner).toBe("под 😀");
    expect(holder?.heldMs).toBeLessThan(limitMs(60_000)); // not a time since 1970 with one digit
    await leave();
    expect(await here.checkFence(key, lease.fencingToken)).toBe("current");
    await leave();
    expect(await lease.release()).toBe(true);
    await before.release();
    await here.close();
    await pool.end();
  });

  test("finds the grant in assertHeld, also with another clock in the search path", async () => {
    const lease = await there.acquire("счёт", { ttlMs: 60_000 });
    const client = await otherPool.connect();
    await client.query("SET search_path = mock, pg_catalog; SET client_encoding = 'LATIN1'");
    await client.query("BEGIN");
    await assertHeld(client, lease);
    await client.query("ROLLBACK");
    client.release(true);
    await lease.release();
  });

  test("creates the schema that another connection would create", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    await pool.query("CREATE TEMP TABLE text (a int); CREATE TEMP TABLE jsonb (a int)");
    const [here, other] = [pool, otherPool].map((one) =>
      createLocks(postgres(one, { schema: "by_settings" })),
    );
    const lease = await (here as Locks).acquire("key");
    expect(await other?.tryAcquire("key")).toBeNull();
    expect(await lease.release()).toBe(true);
    await Promise.all([here?.close(), other?.close()]);
    await pool.end();
  });

  test("does not make a reply earlier than the commit of a synchronous standby", async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const here = createLocks(postgres(pool, { commandTimeoutMs: 300 }));
    await here.inspect("any");
    await pool.query("SET synchronous_commit = local");
    try {
      await otherPool.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
      await otherPool.query("SELECT pg_reload_conf()");
      await expect.poll(commitWaits).toBe(true);
      await expect(here.tryAcquire("key")).rejects.toMatchObject({ outcome: "unknown" });
    } finally {
      await otherPool.query("ALTER SYSTEM RESET synchronous_standby_names");
      await otherPool.query("SELECT pg_reload_conf()");
      await expect.poll(commitWaits).toBe(false);
      await here.close();
      await pool.end();
    }
  });

  /** Whether a commit waits for a standby. Another process of the server applies the setting, and cancelling shows the wait. */
  async function commitWaits(): Promise<boolean> {
    const client = await otherPool.connect();
    const notices: (string | undefined)[] = [];
    client.on("notice", ({ message }) => notices.push(message));
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const commit = client.query("SELECT pg_logical_emit_message(true, 'test', '')").catch(() => undefined);
    await Promise.race([commit, setTimeout(300)]);
    await otherPool.query("SELECT pg_cancel_backend($1)", [rows[0]?.pid]);
    await commit;
    client.release(true);
    return notices.some((message) => message?.includes("synchronous replication"));
  }

  test("keeps a lease in advisory mode, also if all its connections start so", async () => {
    const options = "-c search_path=mock,pg_catalog -c default_transaction_isolation=serializable";
    const pool = new pg.Pool({ connectionString: server.url, max: 2, options });
    const here = createLocks(postgres(pool, { mode: "advisory" }));
    const lease = await here.acquire("advisory", { ttlMs: 1_500 });
    await setTimeout(3_000);
    expect(await there.tryAcquire("advisory")).toBeNull();
    expect(await lease.release()).toBe(true);
    await here.close();
    await pool.end();
  });

  test("or with other parsers of values has the same results", async () => {
    const types = { getTypeParser: () => (value: string) => ({ wrapped: value }) };
    const pool = new pg.Pool({ connectionString: server.url, types: types as never });
    const here = createLocks(postgres(pool));
    const lease = await here.acquire("parsers", { owner: "pod" });
    await lease.extend();
    expect((await here.inspect("parsers")).holders).toMatchObject([{ owner: "pod" }]);
    const client = await pool.connect();
    await client.query("BEGIN");
    await assertHeld(client, lease);
    await client.query("COMMIT");
    client.release();
    expect(await here.admin.nodes()).toMatchObject([{ reachable: true }]);
    expect(await lease.release()).toBe(true);
    await here.close();
    await pool.end();
  });
});
