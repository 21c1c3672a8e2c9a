import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { onMariaDb, startMariaDb } from "../support/mariadb-server.ts";
import { onPostgres, startPostgres } from "../support/postgres-server.ts";

const program = fileURLToPath(new URL("../../../../examples/stock/dist/main.js", import.meta.url));
const rest = String.raw` units sold, \d+\.\d\d conflicts per request, \d+ requests/s$`;

async function sellsOnce(database: { readonly url: string; stop(): Promise<void> }): Promise<void> {
  const server = await startRedis();
  try {
    const lockServer = `redis://127.0.0.1:${server.port}`;
    const { stdout, stderr, status } = spawnSync(process.execPath, [program, database.url, lockServer], {
      encoding: "utf8",
    });
    expect(stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(`^1 article, optimistic: 750${rest}`),
      expect.stringMatching(`^1 article, with a lock: 750${rest.replace(String.raw`\d+\.\d\d`, "0.00")}`),
      expect.stringMatching(`^1000 articles, optimistic: \\d+${rest}`),
      expect.stringMatching(
        `^1000 articles, with a lock: \\d+${rest.replace(String.raw`\d+\.\d\d`, "0.00")}`,
      ),
    ]);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  } finally {
    await server.stop();
    await database.stop();
  }
}

onPostgres("32 writers on PostgreSQL", () => {
  test("sell each unit once, without a lock and with one", async () => {
    await sellsOnce(await startPostgres());
  });
});

onMariaDb("32 writers on MariaDB", () => {
  test("sell each unit once, without a lock and with one", async () => {
    await sellsOnce(await startMariaDb());
  });
});
