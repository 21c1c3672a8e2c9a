import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../holdfast/test/support/mariadb-server.ts";
import { commandLine } from "./support/cli.ts";

onMariaDb("holdfast, with the URL of MariaDB,", () => {
  const cli = commandLine();
  const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
  let server: MariaDbServer;

  beforeAll(async () => {
    server = await startMariaDb();
  });

  afterAll(() => server.stop());

  test("runs a command under a lock", async () => {
    expect((await cli.run(command, { env: { HOLDFAST_URL: server.url } })).code).toBe(0);
  });

  test("exits with 77 if the server refuses the password", async () => {
    const refused = { HOLDFAST_URL: server.url.replace("root@", "root:wrong@") };
    const { code, out, err } = await cli.run(command, { env: refused });
    expect(code).toBe(77);
    expect(out + err).not.toContain("wrong");
  });
});
