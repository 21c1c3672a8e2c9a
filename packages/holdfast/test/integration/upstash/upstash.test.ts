import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Redis } from "@upstash/redis";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { upstash } from "holdfast/upstash";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  abortOf,
  rejection,
  startRedis,
  startRestServer,
  waitUntil,
  type RedisServer,
  type RestServer,
} from "@holdfast/test-kit";
import { bundleForBrowsers, startWorkerd } from "@holdfast/test-kit/edge";

import { onRedis } from "../../support/servers.ts";
import { wholeConformance } from "../../support/conformance.ts";

onRedis("locks by Upstash's REST protocol, translated to a real Redis,", () => {
  let server: RedisServer;
  let rest: RestServer;

  beforeAll(async () => {
    server = await startRedis();
    rest = await startRestServer(server.port);
  });

  afterAll(async () => {
    await rest.stop();
    await server.stop();
  });

  function clientOf({ url, token }: { url: string; token: string } = rest): Redis {
    return new Redis({ url, token, enableTelemetry: false });
  }

  describe.concurrent("pass the conformance suite:", () => {
    wholeConformance({
      // A break is reported at the next renewal, after 10 s with the TTLs of these cases. The test below has a shorter TTL.
      test: (name, body) => (/break|loss|any key is lost/.test(name) ? undefined : test(name, body)),
      open: async () => ({ driver: upstash(clientOf()), other: upstash(clientOf()) }),
    });
  });

  test("exclude the locks of redis() with the same key, whose token they do not show", async () => {
    const byRest = createLocks(upstash(clientOf()));
    const byTcp = createLocks(redis(server.client()));
    const first = await byTcp.acquire("shared", { owner: "tcp" });
    expect(await byRest.tryAcquire("shared")).toBeNull();
    expect((await byRest.inspect("shared")).holders).toMatchObject([{ owner: "another client" }]);
    const waiting = byRest.acquire("shared", { waitMs: 20_000 });
    await waitUntil(async () => (await byRest.inspect("shared")).waiterCount === 1, "it waits");
    await first.release();
    const second = await waiting;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(await byTcp.tryAcquire("shared")).toBeNull();
    await second.release();
    const third = await byTcp.acquire("shared");
    expect(third.fencingToken).toBeGreaterThan(second.fencingToken);
    await third.release();
    await Promise.all([byRest.close(), byTcp.close()]);
  });

  test("a break is reported at the next renewal, and grants the lock to the next waiter", async () => {
    const [holder, operator] = [createLocks(upstash(clientOf())), createLocks(upstash(clientOf()))];
    const lease = await holder.acquire("broken", { ttlMs: 900 });
    const waiting = operator.acquire("broken");
    await waitUntil(async () => (await operator.inspect("broken")).waiterCount === 1, "it waits");
    expect(
      await operator.admin.breakLock("broken", { fencingToken: lease.fencingToken, reason: "stuck" }),
    ).toBe(true);
    await abortOf(lease.signal);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "broken" });
    expect(await (await waiting).release()).toBe(true);
    await Promise.all([holder.close(), operator.close()]);
  });

  test("a waiter sends ever fewer requests", async () => {
    const locks = createLocks(upstash(clientOf()));
    const lease = await locks.acquire("polled", { ttlMs: 60_000, renew: false });
    const before = rest.commands();
    await expect(createLocks(upstash(clientOf())).acquire("polled", { waitMs: 2_000 })).rejects.toMatchObject(
      {
        code: "wait-timeout",
      },
    );
    expect(rest.commands() - before).toBeLessThan(15);
    await lease.release();
    await locks.close();
  });

  test("no error contains a command or a token", async () => {
    const refused = createLocks(upstash(clientOf({ url: rest.url, token: "wrong" })));
    const { error } = await rejection(refused.tryAcquire("key"));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect(JSON.stringify([String(error), String((error as Error).cause)])).not.toMatch(/command was|\["ev/);
    await refused.close();
    await server.client().set("lock:hash", "1");
    await server.client().del("lock:hash");
    await server.client().hset("lock:hash", { a: 1 });
    const locks = createLocks(upstash(clientOf()));
    await expect(locks.tryAcquire("hash")).rejects.toMatchObject({ code: "kind-mismatch" });
    await locks.close();
  });

  test("another client is refused", () => {
    expect(() => upstash({} as never)).toThrow(/Expected `client` to be a Redis of @upstash\/redis/);
    expect(() => upstash(clientOf(), { claimMs: 1 } as never)).toThrow(/Unknown option `claimMs`/);
  });

  test("run the first example of the page", async () => {
    const page = await readFile(new URL("../../../../../docs/drivers/upstash.md", import.meta.url), "utf8");
    const [, example = ""] = /```ts\n(.*?)```/s.exec(page) ?? [];
    expect(example).toContain("Redis.fromEnv()");
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "--eval", example],
      {
        cwd: fileURLToPath(new URL(".", import.meta.url)),
        env: { ...process.env, UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: rest.token },
      },
    );
    expect(stdout).toMatch(/^held with the fencing token \d+\n$/);
  });

  test("work in a worker without the modules of Node", async () => {
    const source = `
      import { Redis } from "@upstash/redis/cloudflare";
      import { createLocks } from "holdfast";
      import { upstash } from "holdfast/upstash";
      export default {
        async fetch(request, env) {
          const locks = createLocks(upstash(new Redis({ url: env.URL, token: env.TOKEN })));
          const key = await locks.withLock("worker", (lease) => lease.key);
          await locks.close();
          return new Response(key);
        },
      };`;
    const folder = fileURLToPath(new URL(".", import.meta.url));
    const module = await bundleForBrowsers({ source, folder, conditions: ["@holdfast/source"] });
    const env = { URL: rest.url, TOKEN: rest.token };
    const workerd = await startWorkerd({ module, env, compatibilityFlags: [] });
    const locks = createLocks(upstash(clientOf()));
    const held = await locks.acquire("worker");
    const reply = fetch(workerd.url);
    await waitUntil(async () => (await locks.inspect("worker")).waiterCount === 1, "the worker waits");
    await held.release();
    expect(await (await reply).text()).toBe("worker");
    await workerd.stop();
    await locks.close();
  });
});
