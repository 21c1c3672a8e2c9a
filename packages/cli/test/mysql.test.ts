import { setTimeout as pause } from "node:timers/promises";

import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../holdfast/test/support/mariadb-server.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose, testUnreachable, type Diagnosis } from "./support/engine-tests.ts";

onMariaDb("holdfast, with the URL of MariaDB,", () => {
  const cli = commandLine();
  const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
  let server: MariaDbServer;

  beforeAll(async () => {
    server = await startMariaDb();
  });

  afterAll(() => server.stop());

  testUnreachable(cli, () => "mysql://user:secret@127.0.0.1:1/db");

  test("doctor finds what puts grants at risk, and times a lock", async () => {
    const doctor = (): Promise<Diagnosis> => diagnose(cli, server.url);
    const found = await doctor();
    expect(found.findings).toMatchObject([
      {
        id: "not-durable",
        level: "critical",
        fix: expect.stringContaining("Add the setting to the option file too") as string,
        command: expect.stringMatching(/^SET GLOBAL innodb_flush_log_at_trx_commit = 1; /) as string,
      },
    ]);
    expect(found.probe).toMatchObject({ acquire: expect.any(Number) as number });
    const admin = await createConnection(server.url);
    await admin.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    expect((await doctor()).findings).toEqual([]);
    await admin.query("SET GLOBAL read_only = 1");
    const readOnly = await doctor();
    expect(readOnly.findings.map(({ id, level }) => `${level} ${id}`)).toContain("critical standby");
    expect(readOnly.probe).toBeNull(); // a lock would be granted by the rights of the procedures' creator
    await admin.query("SET GLOBAL read_only = 0");
    await admin.end();
  });

  test("doctor works where autocommit is off, and finds sessions that were left in a transaction", async () => {
    const admin = await createConnection(server.url);
    await admin.query("CREATE TABLE account (id INT)");
    await admin.beginTransaction();
    await admin.query("SELECT * FROM account");
    await admin.query("SET GLOBAL autocommit = 0");
    const found = await diagnose(cli, server.url);
    expect(found.probe).toMatchObject({ release: expect.any(Number) as number });
    expect(found.findings.map(({ id }) => id)).not.toContain("open-transactions");
    await admin.query("SET GLOBAL autocommit = 1");
    await pause(11_500);
    const { findings } = await diagnose(cli, server.url, "--no-probe");
    expect(findings.map(({ id }) => id)).toContain("open-transactions");
    await admin.end();
  });

  test("exits with 77 if the server refuses the password", async () => {
    const refused = { HOLDFAST_URL: server.url.replace("root@", "root:wrong@") };
    const { code, out, err } = await cli.run(command, { env: refused });
    expect(code).toBe(77);
    expect(out + err).not.toContain("wrong");
  });
});
