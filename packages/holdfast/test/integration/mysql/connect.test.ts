import { createLocks, isLockError } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProxy } from "@holdfast/test-kit";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("connect, with the URL of MySQL,", () => {
  let server: MariaDbServer;

  beforeAll(async () => {
    server = await startMariaDb();
  });

  afterAll(async () => {
    await server.stop();
  });

  test("replaces a half-open connection, whose replies are missing", async () => {
    const proxy = await startProxy(server.port);
    const url = new URL(server.url);
    url.port = String(proxy.port);
    url.search = "maxConnections=1&commandTimeoutMs=300";
    const locks = createLocks(await connect(url));
    await locks.acquire("held", { owner: "mute this reply" });
    proxy.muteConnections(/mute this reply/);
    await expect(locks.inspect("held")).rejects.toMatchObject({ code: "engine-unavailable" });
    await locks.withLock("other", { waitMs: 60_000 }, () => undefined);
    await locks.close();
    await proxy.stop();
  });

  test("reports an unreachable server as such, without a secret in the error", async () => {
    const driver = await connect("mysql://user:secret@127.0.0.1:1/db?commandTimeoutMs=300");
    const error: unknown = await driver.inspect("key").catch((reason: unknown) => reason);
    expect(isLockError(error, "engine-unavailable")).toBe(true);
    expect(String(error)).not.toContain("secret");
    await driver.close();
  });

  test.each([
    ["?createSchema=yes", "Expected `createSchema` in the URL to be true or false"],
    ["?maxConnections=0", "Expected `maxConnections` to be an integer from 1 to 1000"],
    ["?commandTimeoutMs=1&commandTimeoutMs=2", "Expected `commandTimeoutMs` to be given once"],
  ])("rejects %s", async (query, message) => {
    await expect(connect(`mysql://user:secret@host/db${query}`)).rejects.toThrow(message);
  });
});
