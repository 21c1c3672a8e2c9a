import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { createLocks } from "holdfast";
import { postgres, type PostgresClient } from "holdfast/postgres";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgresJs from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPostgres("postgres()", () => {
  let server: PostgresServer;
  let pool: pg.Pool;

  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url });
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  test("locks by a pool of pg, postgres.js, and a function over an ORM or query builder, for the same keys", async () => {
    const sql = postgresJs(server.url, { max: 2, onnotice: () => undefined });
    const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
    const orm = drizzle(pool);
    const clients: Record<string, PostgresClient> = {
      pg: pool,
      "postgres.js": sql,
      Kysely: async (text, params) =>
        (await kysely.executeQuery<object>(CompiledQuery.raw(text, params))).rows,
      Drizzle: async (text, params) => {
        const [before = "", after] = text.split("$1");
        const query = drizzleSql.raw(before);
        return (
          await orm.execute(
            after === undefined ? query : query.append(drizzleSql`${params[0]}${drizzleSql.raw(after)}`),
          )
        ).rows;
      },
      "Drizzle's own client": orm.$client,
    };
    const locks = Object.values(clients).map((client) => createLocks(postgres(client)));
    let inside = 0;
    let turns = 0;
    const use = locks.flatMap((one) =>
      Array.from({ length: 3 }, () =>
        one.withLock("shared", async () => {
          inside += 1;
          expect(inside).toBe(1);
          await pool.query("SELECT 1");
          turns += 1;
          inside -= 1;
        }),
      ),
    );
    await Promise.all(use);
    for (const [index, client] of Object.values(clients).entries()) {
      const own = createLocks(postgres(client, { schema: `by_client_${index}` }));
      const lease = await own.acquire("key", { labels: { text: "?$1 'x'" } });
      await lease.extend();
      expect((await own.inspect("key")).holders).toMatchObject([{ labels: { text: "?$1 'x'" } }]);
      expect(await lease.release()).toBe(true);
      await own.close();
    }
    expect(turns).toBe(use.length);
    await Promise.all(locks.map((one) => one.close()));
    await sql.end();
  });

  test("refuses other values and unknown options at once", () => {
    for (const client of [undefined, null, "postgres://h", {}]) {
      expect(() => postgres(client as unknown as PostgresClient)).toThrow(
        "Expected `client` to be a Pool of pg",
      );
    }
    expect(() => postgres(pool, { prefix: "p" } as object)).toThrow("Unknown option `prefix`");
    expect(() => postgres(pool, { schema: "Locks" })).toThrow("Expected `schema` to be");
    expect(() => postgres(pool, { commandTimeoutMs: 5 })).toThrow("Expected `commandTimeoutMs` to be");
    expect(() => postgres(async () => [], { listen: true })).toThrow("Expected `listen` to be used with");
  });

  test("refuses a key with a NUL character, which PostgreSQL cannot store", async () => {
    const locks = createLocks(postgres(pool));
    await expect(locks.tryAcquire("a\0b")).rejects.toMatchObject({
      code: "invalid-key",
      message: 'The key "a\\u0000b" has a NUL character, and PostgreSQL cannot store it',
    });
    const odd = `"'\\ $1 é 😀 ${"x".repeat(400)}`;
    expect(await locks.withLock(odd, async () => (await locks.inspect(odd)).key)).toBe(odd);
    await locks.close();
  });

  test("runs at read committed, whatever the default isolation level is", async () => {
    const strict = new pg.Pool({
      connectionString: server.url,
      options: "-c default_transaction_isolation=serializable",
    });
    const locks = createLocks(postgres(strict));
    expect(await locks.withLock("strict", async () => (await locks.inspect("strict")).holders.length)).toBe(
      1,
    );
    await locks.close();
    await strict.end();
  });
});
