import { createLocks, type Locks } from "holdfast";
import { assertHeld, postgres, type PostgresClient, type PostgresTransaction } from "holdfast/postgres";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPostgres("a connection that the program left in a transaction", () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  let otherPool: pg.Pool;
  let here: Locks;
  let there: Locks;
  let key: string;

  beforeAll(async () => {
    server = await startPostgres();
    otherPool = new pg.Pool({ connectionString: server.url });
  });

  afterAll(async () => {
    await otherPool.end();
    await server.stop();
  });

  beforeEach(() => {
    pool = new pg.Pool({ connectionString: server.url });
    [here, there] = [createLocks(postgres(pool)), createLocks(postgres(otherPool))];
    key = `account:${crypto.randomUUID()}`;
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
    await pool.end();
  });

  /** As a handler that threw between BEGIN and COMMIT. The pool gives the connection to the next statement. */
  async function leave(...statements: string[]): Promise<void> {
    const client = await pool.connect();
    for (const statement of ["BEGIN", ...statements]) {
      await client.query(statement).catch(() => undefined);
    }
    client.release();
  }

  /** Ends the transaction, if the connection is still in the pool. */
  async function rollBack(): Promise<void> {
    const client = await pool.connect();
    await client.query("ROLLBACK");
    client.release();
  }

  const states: readonly [state: string, statements: string[]][] = [
    ["that has run a statement", ["SELECT 1"]],
    ["that has failed", ["SELECT 1 / 0"]],
    ["with a snapshot", ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1"]],
  ];

  test.each(states)("%s gets no grant, which a ROLLBACK would undo", async (_, statements) => {
    await leave(...statements);
    const lease = await here.acquire(key);
    await rollBack();
    expect(await there.tryAcquire(key)).toBeNull();
    expect(await there.checkFence(key, lease.fencingToken)).toBe("current");
  });

  test.each(states)("%s gets no extension", async (_, statements) => {
    const lease = await here.acquire(key, { ttlMs: 5_000, renew: false });
    await leave(...statements);
    await lease.extend(60_000);
    await rollBack();
    expect((await there.inspect(key)).remainingMs).toBeGreaterThan(5_000);
  });

  test.each(states)("%s gets no release", async (_, statements) => {
    const lease = await here.acquire(key);
    await leave(...statements);
    expect(await lease.release()).toBe(true);
    await rollBack();
    expect(await there.tryAcquire(key)).not.toBeNull();
  });

  test("is not read, because its snapshot may be old", async () => {
    const lease = await here.acquire(key);
    await leave("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM holdfast.holders");
    await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "a test" });
    expect(await here.checkFence(key, lease.fencingToken)).toBe("stale");
    expect((await here.inspect(key)).holders).toEqual([]);
  });

  test("gets no schema, and no probe of the notifications", async () => {
    await leave("SELECT 1");
    const locks = createLocks(postgres(pool, { schema: "created_outside", listen: true }));
    await locks.acquire(key);
    await rollBack();
    const other = createLocks(postgres(otherPool, { schema: "created_outside", createSchema: false }));
    expect(await other.tryAcquire(key)).toBeNull();
    await expect.poll(() => locks.admin.nodes()).toMatchObject([{ notifications: "verified" }]);
    await Promise.all([locks.close(), other.close()]);
  });

  test("of postgres.js gets no grant", async () => {
    const sql = postgresJs(server.url, { max: 3, fetch_types: false, onnotice: () => undefined });
    const locks = createLocks(postgres(sql));
    await sql`SELECT 1`; // without a connection reserve() does not resolve (3.4.9)
    const reserved = await sql.reserve();
    await reserved`BEGIN`;
    reserved.release();
    const keys = Array.from({ length: 6 }, (_, index) => `${key}:${index}`);
    await Promise.all(keys.map((one) => locks.acquire(one)));
    await Promise.all(Array.from({ length: 6 }, () => sql`ROLLBACK`));
    expect(await Promise.all(keys.map((one) => there.tryAcquire(one)))).toEqual(keys.map(() => null));
    await locks.close();
    await sql.end();
  });

  test("as the only one is named as the cause, and the acquire waits for its end", async () => {
    const only = new pg.Client({ connectionString: server.url });
    await only.connect();
    const locks = createLocks(postgres(async (text, params) => (await only.query(text, params)).rows));
    await only.query("BEGIN");
    const cause = "PostgreSQL: the connection has an open transaction";
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({
      code: "engine-unavailable",
      outcome: "none",
      retryable: true,
      message: expect.stringContaining(cause),
    });
    const waiting = locks.acquire(key);
    await only.query("ROLLBACK");
    expect(await (await waiting).release()).toBe(true);
    await locks.close();
    await only.end();
  });

  test("is refused as the client of the driver", async () => {
    const client = await otherPool.connect();
    const sql = postgresJs(server.url, { max: 1, fetch_types: false });
    await sql`SELECT 1`; // without a connection reserve() does not resolve (3.4.9)
    const reserved = await sql.reserve();

    for (const one of [client, new pg.Client(server.url), reserved]) {
      expect(() => postgres(one as unknown as PostgresClient)).toThrow(
        "one connection may have a transaction",
      );
    }
    reserved.release();
    await sql.begin((transaction) => {
      expect(() => postgres(transaction as unknown as PostgresClient)).toThrow("one connection may have");
    });
    client.release();
    await sql.end();
  });

  test("is what assertHeld needs: without one it rejects, because nothing is fenced", async () => {
    const lease = await here.acquire(key);
    const client = await otherPool.connect();
    await expect(assertHeld(client, lease)).rejects.toThrow(
      `PostgreSQL: assertHeld("${key}") needs an open transaction`,
    );
    await client.query("BEGIN");
    await assertHeld(client, lease);
    await client.query("SAVEPOINT one");
    await assertHeld(client, lease);
    await client.query("COMMIT");
    client.release();
    const byPool = async (text: string, params: string[]): Promise<object[]> =>
      (await otherPool.query<object>(text, params)).rows;
    await expect(assertHeld(byPool, lease)).rejects.toMatchObject({ code: "unsupported", key });
    const sql = postgresJs(server.url, { max: 1, fetch_types: false });
    for (const one of [otherPool, sql]) {
      const refused = assertHeld(one as unknown as PostgresTransaction, lease);
      await expect(refused).rejects.toThrow("a pool may use another connection");
    }
    await sql.begin((transaction) => assertHeld(transaction, lease));
    await sql.end();
  });

  const transforms: Readonly<
    Record<string, NonNullable<postgresJs.Options<Record<string, never>>["transform"]>>
  > = {
    pascal: postgresJs.pascal,
    camel: postgresJs.camel,
    "of values": { value: { from: (value: unknown) => `<${String(value)}>` } },
  };

  test.each(Object.entries(transforms))(
    "does not matter, nor does the transform %s of postgres.js",
    async (_, transform) => {
      const sql = postgresJs(server.url, {
        max: 2,
        fetch_types: false,
        transform,
        onnotice: () => undefined,
      });
      const locks = createLocks(postgres(sql));
      const lease = await locks.acquire(key, { owner: "pod" });
      await lease.extend();
      expect((await locks.inspect(key)).holders).toMatchObject([
        { owner: "pod", fencingToken: lease.fencingToken },
      ]);
      expect(await locks.admin.nodes()).toMatchObject([{ reachable: true, role: "primary" }]);
      await sql.begin((transaction) => assertHeld(transaction, lease));
      expect(await lease.release()).toBe(true);
      await locks.close();
      await sql.end();
    },
  );
});
