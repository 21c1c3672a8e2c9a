import { waitUntil } from "@holdfast/test-kit";
import { drizzle } from "drizzle-orm/node-postgres";
import { sql as drizzleSql } from "drizzle-orm";
import { createLocks, type Lease, type Locks } from "holdfast";
import { assertHeld, postgres, type PostgresTransaction } from "holdfast/postgres";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import {
  inTransaction,
  onPostgres,
  startPostgres,
  type PostgresServer,
} from "../../support/postgres-server.ts";

onPostgres("assertHeld", () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  let here: Locks;
  let there: Locks;
  let key: string;

  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url });
    await pool.query("CREATE TABLE account (id integer PRIMARY KEY, balance integer)");
    await pool.query("INSERT INTO account VALUES (1, 0)");
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  beforeEach(() => {
    [here, there] = [createLocks(postgres(pool)), createLocks(postgres(pool))];
    key = `account:${crypto.randomUUID()}`;
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
  });

  async function expired(): Promise<Lease> {
    const lease = await here.acquire(key, { ttlMs: 100, renew: false });
    // The grant ends at the server later than here, by as much as the request took.
    await waitUntil(async () => (await there.inspect(key)).holders.length === 0, "the lease expires");
    return lease;
  }

  test("resolves for a lease that holds its key", async () => {
    const lease = await here.acquire(key);
    await inTransaction(pool, (client) => assertHeld(client, lease));
  });

  test.each<[string, () => Promise<Lease>]>([
    ["expired", expired],
    [
      "was released",
      async () => {
        const lease = await here.acquire(key);
        await lease.release();
        return lease;
      },
    ],
    [
      "was broken",
      async () => {
        const lease = await here.acquire(key);
        await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
        return lease;
      },
    ],
    [
      "was followed by another holder",
      async () => {
        const lease = await expired();
        await there.acquire(key);
        return lease;
      },
    ],
  ])("rejects for a lease that %s, and the transaction cannot commit", async (_, end) => {
    const lease = await end();
    const transaction = inTransaction(pool, async (client) => {
      await client.query("UPDATE account SET balance = balance + 1");
      await assertHeld(client, lease).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "lease-lost", key });
      });
      await client.query("SELECT 1"); // as if the caller had ignored the error
    });
    await expect(transaction).rejects.toMatchObject({ code: "25P02" });
    expect((await pool.query("SELECT balance FROM account")).rows).toEqual([{ balance: 0 }]);
  });

  test("no other holder gets the key before the transaction has ended, although the lease expires in between", async () => {
    const lease = await here.acquire(key, { ttlMs: 200, renew: false });
    const events: string[] = [];
    const waiting = there.acquire(key).then(() => events.push("next holder"));
    await inTransaction(pool, async (client) => {
      await assertHeld(client, lease);
      await client.query("SELECT pg_sleep(0.5)");
      expect(await there.tryAcquire(key)).toBeNull();
      events.push("commit");
    });
    await waiting;
    expect(events).toEqual(["commit", "next holder"]);
  });

  test("a release and a break do not wait for the transaction, and the next holder does", async () => {
    for (const end of ["release", "break"] as const) {
      const lease = await here.acquire(`${key}:${end}`);
      await inTransaction(pool, async (client) => {
        await assertHeld(client, lease);
        const ended =
          end === "release"
            ? lease.release()
            : there.admin.breakLock(lease.key, { fencingToken: lease.fencingToken, reason: "test" });
        expect(await ended).toBe(true);
        expect(await there.tryAcquire(lease.key)).toBeNull();
      });
      const next = await there.acquire(lease.key);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    }
  });

  test("the transaction does not delay extensions of the lease", async () => {
    const lease = await here.acquire(key, { ttlMs: 5_000, renew: false });
    await inTransaction(pool, async (client) => {
      await assertHeld(client, lease);
      await lease.extend(20_000);
      expect(lease.remainingMs()).toBeGreaterThan(10_000);
    });
  });

  test("a transaction fails to serialize, or reads the present lease, with the level serializable", async () => {
    const lease = await here.acquire(key);
    await inTransaction(pool, async (client) => {
      await client.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
      await assertHeld(client, lease);
    });
    const stale = inTransaction(pool, async (client) => {
      await client.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
      await client.query("SELECT 1 FROM account");
      await lease.release();
      await there.acquire(key);
      await assertHeld(client, lease);
    });
    await expect(stale).rejects.toMatchObject({ code: "40001" });
  });

  test("takes a transaction of postgres.js, Kysely and Drizzle", async () => {
    const lease = await here.acquire(key);
    const lost = await here.acquire(`${key}:lost`);
    await lost.release();
    const sql = postgresJs(server.url, { max: 1, onnotice: () => undefined });
    const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
    const orm = drizzle(pool);
    const transactions: Record<
      string,
      (use: (client: PostgresTransaction) => Promise<void>) => Promise<unknown>
    > = {
      "postgres.js": (use) => sql.begin((transaction) => use(transaction)),
      Kysely: (use) =>
        kysely.transaction().execute((transaction) =>
          use(async (text, params) => {
            const { rows } = await transaction.executeQuery(CompiledQuery.raw(text, params));
            return rows as object[];
          }),
        ),
      Drizzle: (use) =>
        orm.transaction((transaction) =>
          use(async (text, [parameter]) => {
            const [before = "", after = ""] = text.split("$1");
            const { rows } = await transaction.execute(
              drizzleSql`${drizzleSql.raw(before)}${parameter}${drizzleSql.raw(after)}`,
            );
            return rows;
          }),
        ),
    };
    for (const [name, transaction] of Object.entries(transactions)) {
      await transaction((client) => assertHeld(client, lease));
      await expect(
        transaction((client) => assertHeld(client, lost)),
        name,
      ).rejects.toMatchObject({
        code: "lease-lost",
      });
    }
    await sql.end();
  });

  test("refuses what runs no statements, and a schema that is no identifier", async () => {
    const lease = { key, fencingToken: 1n };
    await expect(assertHeld({} as PostgresTransaction, lease)).rejects.toThrow(
      "Expected `transaction` to be a client of pg",
    );
    const client = new pg.Client(server.url);
    await expect(assertHeld(client, lease, { schema: "x; DROP" })).rejects.toThrow("Expected `schema` to be");
  });
});
