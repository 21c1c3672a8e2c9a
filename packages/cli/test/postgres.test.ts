import { setTimeout as pause } from "node:timers/promises";

import { limitMs, ServerClocks, waitUntil } from "@holdfast/test-kit";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import {
  onPostgres,
  startPostgres,
  startStandby,
  type PostgresServer,
} from "../../holdfast/test/support/postgres-server.ts";
import { onPgBouncer, startPgBouncer } from "../../holdfast/test/support/pgbouncer-server.ts";
import { hasClocks } from "../../holdfast/test/support/servers.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose, testCommands, testUnreachable } from "./support/engine-tests.ts";

onPostgres("holdfast, with the URL of PostgreSQL,", () => {
  const cli = commandLine();
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
  });

  afterAll(() => server.stop());

  testCommands(cli, () => server.url);
  testUnreachable(cli, () => "postgres://user:secret@127.0.0.1:1/db");

  test("exits with 77 if the server refuses the user", async () => {
    const refused = new URL(server.url);
    refused.username = "nobody";
    const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
    expect((await cli.run(command, { env: { HOLDFAST_URL: refused.href } })).code).toBe(77);
  });

  test("doctor finds sessions that were left in a transaction", async () => {
    const client = new pg.Client(server.url);
    await client.connect();
    await client.query("BEGIN");
    const idsOf = async (): Promise<string[]> =>
      (await diagnose(cli, server.url, "--no-probe")).findings.map(({ id }) => id);
    expect(await idsOf()).not.toContain("open-transactions");
    await pause(10_000);
    expect(await idsOf()).toContain("open-transactions");
    await client.end();
  });

  test("doctor finds what puts grants at risk, and times a lock", async () => {
    const found = await diagnose(cli, server.url);
    expect(found.topology).toBe("postgres");
    expect(found.findings).toMatchObject([
      { id: "not-durable", level: "critical" },
      { id: "idle-in-transaction", level: "info" },
    ]);
    expect(found.probe?.acquire).toBeGreaterThan(0);
    const { out } = await cli.run(["doctor", "--no-probe"], { env: { HOLDFAST_URL: server.url } });
    expect(out).toContain("fsync is off");
  });

  test("the command of a finding has an effect at once, and after a restart", async () => {
    const own = await startPostgres([]);
    const typed = async (command: string): Promise<void> => {
      const client = new pg.Client(own.url);
      await client.connect();
      for (const statement of command.split("; ")) {
        await client.query(statement);
      }
      await client.end();
    };
    const durability = async () =>
      (await diagnose(cli, own.url, "--no-probe")).findings.find(({ id }) => id === "not-durable");
    await typed("ALTER SYSTEM SET full_page_writes = off; SELECT pg_reload_conf()");
    await expect.poll(durability, { timeout: limitMs(30_000) }).toBeDefined();
    await typed((await durability())?.command ?? "");
    await expect.poll(durability, { timeout: limitMs(30_000) }).toBeUndefined();
    await own.restart();
    expect(await durability()).toBeUndefined();
    await own.stop();
  });
});

onPostgres("holdfast doctor, with the URL of a primary of PostgreSQL,", () => {
  const cli = commandLine();

  test.skipIf(!hasClocks)("finds a standby whose clock is ahead", async () => {
    await using clocks = await ServerClocks.make(1);
    const server = await startPostgres();
    const standby = await startStandby(server, clocks.clocks[0]?.env);
    clocks.clocks[0]?.set({ aheadMs: 60_000 });
    const client = new pg.Client(server.url);
    await client.connect();
    await waitUntil(async () => {
      await client.query("SELECT txid_current()"); // the standby replies to the commit
      const { rows } = await client.query(
        "SELECT FROM pg_stat_replication WHERE reply_time > now() + interval '30 s'",
      );
      return rows.length > 0;
    }, "the standby has replied");
    const ids = async (query: string): Promise<string[]> =>
      (await diagnose(cli, `${server.url}${query}`, "--no-probe")).findings.map(({ id }) => id);
    expect(await ids("")).toContain("standby-clock-ahead");
    expect(await ids("?maxClockDifferenceMs=100000")).not.toContain("standby-clock-ahead");
    await client.end();
    await standby.stop();
    await server.stop();
  });
});

onPgBouncer("holdfast doctor, with the URL of a pooler in transaction mode,", () => {
  const cli = commandLine();

  test("finds the pooler, which `mode=advisory` does not work with", async () => {
    const server = await startPostgres();
    const pooler = await startPgBouncer(server, { roundRobin: false });
    const levelOf = async (query: string): Promise<string | undefined> => {
      const { findings } = await diagnose(cli, `${pooler.url}${query}`, "--no-probe");
      return findings.find(({ id }) => id === "transaction-pooler")?.level;
    };
    expect(await levelOf("")).toBe("perf");
    expect(await levelOf("?mode=advisory")).toBe("critical");
    await pooler.stop();
    await server.stop();
  });
});
