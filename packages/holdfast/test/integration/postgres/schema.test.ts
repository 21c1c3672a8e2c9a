import { createLocks, type Locks } from "holdfast";
import { postgres, postgresSchema } from "holdfast/postgres";
import { waitUntil } from "@holdfast/test-kit";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import { expectBoundedAudit, expectOneRecordAfterLostReply } from "../../support/audit-attacks.ts";
import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPostgres("the schema", () => {
  let server: PostgresServer;
  let pool: pg.Pool;

  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, max: 20 });
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  async function rowsOf(schema: string, table: string): Promise<string[]> {
    const { rows } = await pool.query<{ key: string }>(`SELECT key FROM ${schema}.${table} ORDER BY key`);
    return rows.map(({ key }) => key);
  }

  test("is created once by drivers that start at the same time", async () => {
    const locks = Array.from({ length: 10 }, () => createLocks(postgres(pool, { schema: "at_once" })));
    const leases = await Promise.all(locks.map((one) => one.tryAcquire("key")));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
    await Promise.all(locks.map((one) => one.close()));
  });

  test("may be created by hand, repeatedly and while locks are held, and then needs no right to create", async () => {
    await pool.query(postgresSchema("by_hand"));
    await pool.query(`CREATE ROLE program LOGIN;
      GRANT USAGE ON SCHEMA by_hand TO program;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA by_hand TO program`);
    const program = new pg.Pool({ connectionString: server.url.replace("holdfast@", "program@") });
    const locks = createLocks(postgres(program, { schema: "by_hand", createSchema: false }));
    const lease = await locks.acquire("key");
    await pool.query(postgresSchema("by_hand"));
    await lease.extend();
    expect(await lease.release()).toBe(true);
    await locks.close();
    const creating = createLocks(postgres(program, { schema: "no_right" }));
    await expect(creating.acquire("key")).rejects.toThrow("PostgreSQL: permission denied for database");
    await creating.close();
    const missing = createLocks(postgres(pool, { schema: "missing", createSchema: false }));
    await expect(missing.acquire("key")).rejects.toThrow('PostgreSQL: schema "missing" does not exist');
    await missing.close();
    await pool.query(
      "CREATE OR REPLACE FUNCTION by_hand.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 5'",
    );
    const older = createLocks(postgres(program, { schema: "by_hand", createSchema: false }));
    await expect(older.acquire("key")).rejects.toThrow(
      /expected the schema by_hand to have version \d+, got 5/,
    );
    await older.close();
    await program.end();
  });

  test("keeps 1 000 records of breaks, also of concurrent ones and after a step of the clock", async () => {
    const locks = ["a", "b", "c"].map((owner) =>
      createLocks(postgres(pool, { schema: "records" }), { owner }),
    );
    await locks[0]?.inspect("creates the schema");
    await pool.query(`INSERT INTO records.audit
      SELECT id, 0, 'k', 1, '{"by":"ada","reason":"old"}' FROM generate_series(8999999999999001, 8999999999999999) id
      UNION ALL SELECT 0, 0, '', 8999999999999999, ''`);
    await expectBoundedAudit(locks);
    await Promise.all(locks.map((one) => one.close()));
  });

  test("has one record of a break whose reply is lost, and none of a break without the right to write it", async () => {
    const holder = createLocks(postgres(pool, { schema: "broken" }));
    let isLost = false;
    const operator = createLocks(
      postgres(
        async (sql, params) => {
          const { rows } = await pool.query<object>(sql, params);
          if (isLost && sql.includes("break_grant")) {
            isLost = false;
            throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
          }
          return rows;
        },
        { schema: "broken" },
      ),
    );
    await expectOneRecordAfterLostReply(holder, operator, () => (isLost = true));
    await pool.query("ALTER TABLE broken.audit ADD CHECK (key <> 'refused')");
    const lease = await holder.acquire("refused");
    const { fencingToken } = lease;
    await expect(operator.admin.breakLock("refused", { fencingToken, reason: "test" })).rejects.toThrow(
      "audit_key_check",
    );
    expect(await lease.release()).toBe(true);
    await Promise.all([holder.close(), operator.close()]);
  });

  test("keeps no row of a free lock that was not used for an hour, and its fencing tokens still rise", async () => {
    const locks = createLocks(postgres(pool, { schema: "swept" }));
    const { fencingToken } = await locks.acquire("held", { ttlMs: 60_000 });
    const before = await locks.acquire("free");
    await before.release();
    await locks.acquire("recent").then((lease) => lease.release());
    const sweep = (): Promise<unknown> => pool.query("SELECT swept.sweep('{}')");
    await sweep();
    expect(await rowsOf("swept", "locks")).toEqual(["free", "held", "recent"]);
    await pool.query("UPDATE swept.locks SET fencing = fencing - 3600000001 WHERE key <> 'recent'");
    await sweep();
    expect(await rowsOf("swept", "locks")).toEqual(["held", "recent"]);
    expect(await locks.checkFence("held", fencingToken)).toBe("current");
    const after = await locks.acquire("free");
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    await locks.close();
  });

  test("is swept by its users, after each 1000 releases", async () => {
    const locks = createLocks(postgres(pool, { schema: "in_use" }));
    const use = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) {
        await (await locks.tryAcquire(crypto.randomUUID()))?.release();
      }
    };
    await use(1);
    await pool.query("UPDATE in_use.locks SET key = 'old', fencing = fencing - 3600000001");
    await Promise.all(Array.from({ length: 9 }, () => use(111)));
    await waitUntil(async () => !(await rowsOf("in_use", "locks")).includes("old"), "the old row is removed");
    await locks.close();
  });

  test("fencing tokens rise although the server's clock was set back", async () => {
    const locks = createLocks(postgres(pool, { schema: "set_back" }));
    const first = await locks.acquire("key");
    await first.release();
    await pool.query("UPDATE set_back.locks SET fencing = fencing + 86400000000");
    const second = await locks.acquire("key");
    expect(second.fencingToken).toBe(first.fencingToken + 86_400_000_001n);
    await second.release();
    expect((await locks.acquire("key")).fencingToken).toBe(second.fencingToken + 1n);
    await locks.close();
  });

  test("a grant and an extension are durable also where the user's commits are not, and a release need not be", async () => {
    const fast = new pg.Pool({ connectionString: server.url, max: 1, options: "-c synchronous_commit=off" });
    await pool.query(postgresSchema("durable"));
    const settingAfter = async (call: string): Promise<string> => {
      const client = await fast.connect();
      try {
        await client.query("BEGIN");
        await client.query(`SELECT durable.${call}`);
        const { rows } = await client.query<{ value: string }>(
          "SELECT current_setting('synchronous_commit') AS value",
        );
        await client.query("COMMIT");
        return rows[0]?.value as string;
      } finally {
        client.release();
      }
    };
    const request = {
      key: "key",
      token: "a",
      kind: "mutex",
      weight: 1,
      capacity: 1,
      ttlMs: 60_000,
      owner: "test",
    };
    expect(await settingAfter(`acquire('${JSON.stringify(request)}')`)).toBe("on");
    expect(
      await settingAfter(`extend('{"key":"key","token":"a","fencing":"9000000000000000000","ttlMs":60000}')`),
    ).toBe("on");
    expect(await settingAfter(`acquire('${JSON.stringify({ ...request, token: "b" })}')`)).toBe("off");
    expect(await settingAfter(`release('{"key":"key","token":"a"}')`)).toBe("off");
    await fast.end();
  });

  test("a driver leaves no row of waiters or holders, also in a schema named by a reserved word", async () => {
    const open = (): Locks => createLocks(postgres(pool, { schema: "left" }));
    const [here, there] = [open(), open()];
    const uses = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? here : there).withLock(`key ${index % 3}`, () => pool.query("SELECT 1")),
    );
    await Promise.all(uses);
    await Promise.all([here.close(), there.close()]);
    expect([await rowsOf('"left"', "holders"), await rowsOf('"left"', "waiters")]).toEqual([[], []]);
  });
});
