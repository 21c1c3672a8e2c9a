import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../../support/servers.ts";

onRedis("a list of few locks among many other keys", () => {
  const foreignKeys = 100_000;
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
    const client = server.client();
    for (let begin = 0; begin < foreignKeys; begin += 1_000) {
      const keys = Array.from({ length: 1_000 }, (_, i) => [`session:${begin + i}`, "x"]);
      await client.mset(...keys.flat());
    }
  });

  afterAll(() => server.stop());

  const open = (context: TestContext): ReturnType<typeof createLocks> => {
    const locks = createLocks(redis(server.client()));
    context.onTestFinished(() => locks.close());
    return locks;
  };

  async function scans(): Promise<number> {
    return Number(/cmdstat_scan:calls=(\d+)/.exec(await server.client().info("commandstats"))?.[1] ?? 0);
  }

  test("goes on page by page: no call walks through the whole server", async (context) => {
    const locks = open(context);
    await locks.acquire("wanted:1");
    const before = await scans();
    const first = await locks.admin.list({ prefix: "wanted:", limit: 1 });
    expect(first.cursor).not.toBeNull();
    expect((await scans()) - before).toBeLessThan(foreignKeys / 4);
    const found = first.locks.map(({ key }) => key);
    let { cursor } = first;
    for (let pages = 1; cursor !== null; pages += 1) {
      expect(pages).toBeLessThan(1_000);
      const page = await locks.admin.list({ prefix: "wanted:", limit: 1_000, cursor });
      found.push(...page.locks.map(({ key }) => key));
      ({ cursor } = page);
    }
    expect(found).toEqual(["wanted:1"]);
  });

  test("ends when its signal aborts", async (context) => {
    const locks = open(context);
    const abort = new AbortController();
    const before = await scans();
    const page = locks.admin.list({ prefix: "none:", limit: 1, signal: abort.signal });
    const rejected = expect(page).rejects.toThrow("enough");
    await waitUntil(async () => (await scans()) > before, "the list is searching");
    abort.abort(new Error("enough"));
    await rejected;
  });
});
