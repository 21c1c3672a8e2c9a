import { fileURLToPath } from "node:url";

import { createLocks, type Locks } from "holdfast";
import { http } from "holdfast/http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis, timeFactor, waitUntil } from "@holdfast/test-kit";
import { bundleForBrowsers, hasBrowser, openPage, startWorkerd, type Workerd } from "@holdfast/test-kit/edge";

import { inspect, startInstance, type ServiceInstance } from "./support/service.ts";

/** A runtime without the modules of Node, in which the program runs. */
interface EdgeRuntime {
  readonly origin: string;
  call(name: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Ends the runtime of the program at once, and starts it again. */
  reopen(): Promise<void>;
  stop(): Promise<void>;
}

const folder = fileURLToPath(new URL("support", import.meta.url));
const worker = `
  import * as program from "./edge-program.ts";
  export default {
    async fetch(request) {
      const { name, args } = await request.json();
      return Response.json(await program[name](...args));
    },
  };
`;

let redis: RedisServer;

function startService(origin: string): Promise<ServiceInstance> {
  return startInstance({ HOLDFAST_URL: `redis://127.0.0.1:${redis.port}`, HOLDFAST_ORIGINS: origin });
}

async function openWorker(compatibilityFlags: readonly string[]): Promise<EdgeRuntime> {
  const module = await bundle(worker);
  const start = (): Promise<Workerd> => startWorkerd({ module, env: {}, compatibilityFlags });
  let workerd = await start();
  return {
    origin: workerd.url,
    reopen: async () => {
      await workerd.stop();
      workerd = await start();
    },
    stop: () => workerd.stop(),
    call: async (name, ...args) => {
      const response = await fetch(workerd.url, { method: "POST", body: JSON.stringify({ name, args }) });
      const text = await response.text();
      if (!response.ok) {
        throw new Error(`${response.status} ${text} ${workerd.output()}`);
      }
      return JSON.parse(text) as unknown;
    },
  };
}

function bundle(source: string): Promise<string> {
  return bundleForBrowsers({ source, folder, conditions: ["@holdfast/source"] });
}

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(() => redis.stop());

const isSkipped = !hasBrowser && !process.env["CI"];
if (isSkipped) {
  console.warn("\n!!! chromium is missing: the tests that need it are SKIPPED !!!\n");
}

describe("a worker without the modules of Node", () => testRuntime(() => openWorker([])));

describe("a worker with nodejs_compat", () => testRuntime(() => openWorker(["nodejs_compat"]), true));

describe.skipIf(isSkipped)("a page in a browser", () => {
  testRuntime(async () => openPage(await bundle(`export * from "./edge-program.ts"`)));
});

/** @param isSimilar whether an earlier runtime has run the slow tests */
function testRuntime(open: () => Promise<EdgeRuntime>, isSimilar = false): void {
  let runtime: EdgeRuntime;
  let service: ServiceInstance;
  let locks: Locks;
  const call = (name: string, key: string, waitMs: number, ...more: readonly unknown[]): Promise<unknown> =>
    runtime.call(name, { url: service.url, key, waitMs }, ...more);
  const waiters = async (key: string): Promise<number> => (await inspect(service.url, key)).waiterCount;

  beforeAll(async () => {
    runtime = await open();
    service = await startService(runtime.origin);
    locks = createLocks(http(service.url));
  });

  afterAll(async () => {
    await runtime.stop();
    await service.kill("SIGKILL");
    await locks.close();
  });

  test("tries, and releases", async () => {
    expect(await call("tryTwice", "try", 0)).toEqual({ isHeld: true, second: null, released: true });
  });

  test.each(["waitForLock", "waitWithLock"])("%s: waits for another holder", async (name) => {
    const held = await locks.acquire(name);
    const waiting = call(name, name, 20_000);
    await waitUntil(async () => (await waiters(name)) === 1, "it waits");
    await held.release();
    expect(await waiting).toMatchObject({ key: name });
    expect((await inspect(service.url, name)).holders).toEqual([]);
  });

  test.skipIf(isSimilar)(
    "holds a lock while it waits for more locks than it may open connections",
    async () => {
      const keys = Array.from({ length: 8 }, (_, index) => `many:${index}`);
      const held = await Promise.all(keys.map((key) => locks.acquire(key)));
      const waiting = call("waitForMany", "many", 20_000, keys);
      const own = async (): Promise<bigint> => BigInt((await inspect(service.url, "many")).fencingToken ?? 0);
      await waitUntil(async () => (await waiters("many:0")) === 1 && (await own()) > 0n, "it waits");
      await new Promise((resolve) => setTimeout(resolve, 1_700)); // longer than the TTL of its own lease
      await Promise.all(held.map((lease) => lease.release()));
      expect(await waiting).toEqual({ isHeld: true, granted: keys });
    },
  );

  test("waiters of one key get the lock in the order of their calls", async () => {
    const held = await locks.acquire("line");
    const waiting = call("waitInLine", "line", 20_000, 5);
    await waitUntil(async () => (await waiters("line")) > 0, "they wait");
    await held.release();
    expect(await waiting).toEqual([0, 1, 2, 3, 4]);
  });

  test("an abort ends a wait, and leaves nothing", async () => {
    const held = await locks.acquire("abort");
    expect(await call("abortWait", "abort", 300)).toEqual({ aborted: true, name: "TimeoutError" });
    await waitUntil(async () => (await waiters("abort")) === 0, "it has left the queue");
    await held.release();
  });

  test("a client that vanishes leaves the queue", async () => {
    const held = await locks.acquire("vanished");
    const waiting = call("waitForLock", "vanished", 60_000).catch((error: unknown) => error);
    await waitUntil(async () => (await waiters("vanished")) === 1, "it waits");
    await runtime.reopen();
    await waitUntil(async () => (await waiters("vanished")) === 0, "it has left the queue");
    expect(await waiting).toBeInstanceOf(Error);
    await held.release();
  });

  test.skipIf(isSimilar)(
    "the loss of a lease by the end of the service is reported before its validity ends",
    async () => {
      const holding = call("holdUntilLost", "lost", 0);
      await waitUntil(async () => (await inspect(service.url, "lost:held")).holders.length === 1, "it holds");
      await service.kill("SIGKILL");
      const { code, overdueMs } = (await holding) as { code: string; overdueMs: number };
      expect(code).toBe("lease-lost");
      expect(overdueMs).toBeLessThan(250 * timeFactor); // a timer of a busy machine
    },
  );
}
