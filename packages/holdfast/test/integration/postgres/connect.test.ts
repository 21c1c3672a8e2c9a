import { createLocks, isLockError } from "holdfast";
import { connect } from "holdfast/connect";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProxy, waitUntil } from "@holdfast/test-kit";

import { onPostgres, startPostgres, type PostgresServer } from "../../support/postgres-server.ts";

onPostgres("connect, with the URL of PostgreSQL,", () => {
  let server: PostgresServer;
  let admin: pg.Pool;

  beforeAll(async () => {
    server = await startPostgres();
    admin = new pg.Pool({ connectionString: server.url, application_name: "admin" });
  });

  afterAll(async () => {
    await admin.end();
    await server.stop();
  });

  async function connections(): Promise<number> {
    const { rows } = await admin.query<{ count: number }>(
      "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = 'holdfast'",
    );
    return rows[0]?.count as number;
  }

  test("opens a driver with notifications, and closes its connections", async () => {
    const [here, there] = await Promise.all([
      connect(server.url),
      connect(server.url.replace("postgres://", "postgresql://")),
    ]);
    expect(here.capabilities).toMatchObject({ guarantee: "database", waiting: "notify" });
    const [one, other] = [createLocks(here), createLocks(there)];
    const lease = await one.acquire("key");
    const waiting = other.acquire("key");
    await waitUntil(async () => (await one.inspect("key")).waiterCount === 1, "the other waits");
    await lease.release();
    await (await waiting).release();
    expect(await connections()).toBeGreaterThan(2);
    await Promise.all([one.close(), other.close()]);
    await waitUntil(async () => (await connections()) === 0, "all connections are closed");
  });

  test("keeps a session with `mode=advisory`, and closes its connection", async () => {
    const locks = createLocks(await connect(`${server.url}?mode=advisory&listen=false&maxConnections=1`));
    const lease = await locks.acquire("bound", { renew: false });
    await lease.extend();
    expect((await admin.query("SELECT FROM holdfast.holders WHERE session IS NOT NULL")).rowCount).toBe(1);
    expect(await connections()).toBe(2);
    await lease.release();
    await locks.close();
    await waitUntil(async () => (await connections()) === 0, "all connections are closed");
  });

  test("takes options in the query, and leaves the other parameters to the client library", async () => {
    const url = `${server.url}?schema=by_url&listen=false&maxConnections=1&application_name=holdfast&sslmode=disable`;
    const driver = await connect(url, { commandTimeoutMs: 1_000 });
    expect(driver.capabilities.waiting).toBe("poll");
    const locks = createLocks(driver);
    await Promise.all(
      Array.from({ length: 5 }, (_, index) => locks.withLock(`key ${index}`, () => undefined)),
    );
    expect(await connections()).toBe(1);
    expect((await admin.query("SELECT FROM by_url.locks")).rowCount).toBe(5);
    await locks.close();
  });

  test.each([
    ["?schema=A", "Expected `schema` to be"],
    ["?listen=yes", "Expected `listen` in the URL to be true or false"],
    ["?mode=session", 'Expected `mode` to be "lease" or "advisory"'],
    ["?maxConnections=0", "Expected `maxConnections` to be an integer from 1 to 1000"],
    ["?commandTimeoutMs=x", "Expected `commandTimeoutMs` in the URL to be a number"],
    ["?schema=a&schema=b", "Expected `schema` to be given once"],
  ])("rejects %s", async (query, message) => {
    await expect(connect(`postgres://user:secret@host/db${query}`)).rejects.toThrow(message);
  });

  test("rejects an unknown option and an invalid URL, without a secret in the error", async () => {
    const options = { database: 1 };
    await expect(connect("postgres://user:secret@host/db", options)).rejects.toThrow(
      "Unknown option `database`",
    );
    await expect(connect("postgres://user:secret@host:port/db")).rejects.toThrow("Expected the URL to read");
    await expect(connect("postgres://user:secret@host:port/db")).rejects.not.toThrow("secret");
  });

  test("replaces a half-open connection, whose replies are missing", async () => {
    const proxy = await startProxy(server.port);
    const url = `postgres://holdfast@127.0.0.1:${proxy.port}/postgres?maxConnections=1&listen=false&commandTimeoutMs=300`;
    const locks = createLocks(await connect(url));
    await locks.withLock("warm", () => undefined);
    proxy.muteConnections(/mute this/);
    await expect(locks.inspect("mute this")).rejects.toMatchObject({ code: "engine-unavailable" });
    await locks.withLock("other", () => undefined);
    await locks.close();
    await proxy.stop();
  });

  test("reports an unreachable server as such, with the failure on the channel of nodes", async () => {
    const driver = await connect("postgres://user:secret@127.0.0.1:1/db?commandTimeoutMs=300");
    const error: unknown = await driver.inspect("key").catch((reason: unknown) => reason);
    expect(isLockError(error, "engine-unavailable")).toBe(true);
    expect(String(error)).not.toContain("secret");
    await driver.close();
  });
});
