import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { createLocks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startRedis, waitUntil } from "@holdfast/test-kit";
import { Redis } from "ioredis";

import { dist, folder, onInstalledPackage, provide, runNode } from "./support/installed-package.ts";
import { onRedis } from "./support/servers.ts";

onInstalledPackage();

onRedis("fake timers of Vitest", () => {
  afterEach(() => void vi.useRealTimers());

  test("change nothing: a lease that was held across them is renewed, and a wait ends", async () => {
    const server = await startRedis();
    const client = new Redis(server.port);
    const locks = createLocks(redis(client));
    try {
      await locks.withLock("before", () => undefined);
      vi.useFakeTimers({
        toFake: ["setTimeout", "clearTimeout", "setImmediate", "Date", "performance", "queueMicrotask"],
      });
      const lease = await locks.acquire("key", { ttlMs: 1_000 });
      vi.setSystemTime(new Date("2090-01-01"));
      await expect(locks.acquire("key", { waitMs: 500 })).rejects.toMatchObject({ code: "wait-timeout" });
      vi.useRealTimers();
      const { validUntil } = lease;
      await waitUntil(() => lease.validUntil > validUntil, "the lease is renewed");
      expect(await lease.release()).toBe(true);
    } finally {
      await locks.close();
      client.disconnect();
      await server.stop();
    }
  });
});

onRedis("Jest, in an environment without the globals that jsdom lacks,", () => {
  /** Real Jest. jest-environment-jsdom has neither these globals nor timers that are objects. */
  const environment = `
    const { TestEnvironment } = require(${JSON.stringify(resolveFromJest("jest-environment-node"))});
    module.exports = class extends TestEnvironment {
      async setup() {
        await super.setup();
        for (const name of ["TextEncoder", "TextDecoder", "setImmediate", "clearImmediate"]) delete this.global[name];
        const { setTimeout } = this.global;
        this.global.setTimeout = (...args) => Number(setTimeout(...args));
      }
    };`;
  const tests = (port: number): string => `
    const { Redis } = require("ioredis");
    const { createLocks } = require("holdfast");
    const { redis } = require("holdfast/redis");
    const client = new Redis(${port});
    const locks = createLocks(redis(client));
    afterAll(async () => {
      await locks.close();
      client.disconnect();
    });

    test("works under fake timers, and afterwards", async () => {
      await locks.withLock("before", () => 1);
      jest.useFakeTimers();
      expect(await locks.withLock("during", () => 2)).toBe(2);
      await locks.withLock("held", async () => {
        await expect(locks.mutex("held-too").tryWithLock(() => 3)).resolves.toEqual({ ran: true, value: 3 });
      });
      jest.useRealTimers();
      expect(await locks.withLock("after", () => 4)).toBe(4);
    });`;

  test("a program loads the package, and uses it under fake timers and after them", async () => {
    const server = await startRedis();
    try {
      await provide("ioredis", "ioredis");
      await writeFile(join(folder, "environment.cjs"), environment);
      await writeFile(join(folder, "fakes.test.js"), tests(server.port));
      const config = {
        rootDir: folder,
        testEnvironment: join(folder, "environment.cjs"),
        transform: {},
        watchman: false,
      };
      const jest = resolveFromJest("jest/bin/jest.js");
      await runNode([jest, "--ci", "--config", JSON.stringify(config)]);
    } finally {
      await server.stop();
    }
  });
});

describe("timers that are numbers beside Node's immediates, as in the renderer of Electron,", () => {
  test("are set and cleared", async () => {
    const program = `
      const { setTimeout: real } = globalThis;
      globalThis.setTimeout = (...args) => Number(real(...args));
      const { createLocks } = await import("holdfast");
      const { memory } = await import("holdfast/memory");
      const locks = createLocks(memory());
      const lease = await locks.acquire("key");
      console.log(await locks.acquire("key", { waitMs: 20 }).catch((error) => error.code), await lease.release());
      await locks.close();`;
    expect((await runNode(["--input-type=module", "-e", program])).stdout.trim()).toBe("wait-timeout true");
  });
});

describe("a signal of a polyfill or another realm", () => {
  class ForeignSignal extends EventTarget {
    aborted = false;
    reason: unknown;

    abort(reason: unknown): void {
      this.aborted = true;
      this.reason = reason;
      this.dispatchEvent(new Event("abort"));
    }
  }

  test("ends a wait with its reason, and has one listener, however many calls get it", async () => {
    const locks = createLocks(memory());
    const foreign = new ForeignSignal();
    const listens = vi.spyOn(foreign, "addEventListener");
    const signal = foreign as unknown as AbortSignal;
    const held = await locks.acquire("key", { signal });
    const waits = [locks.acquire("key", { signal }), locks.mutex("key").acquire({ signal })];
    const watched = locks.admin.watch("key", { signal })[Symbol.asyncIterator]();
    const reason = new Error("stopped");
    foreign.abort(reason);
    for (const wait of waits) {
      await expect(wait).rejects.toBe(reason);
    }
    await expect(watched.next()).resolves.toMatchObject({ done: true });
    await expect(locks.acquire("other", { signal })).rejects.toBe(reason);
    expect(listens).toHaveBeenCalledOnce();
    await held.release();
    await locks.close();
  });

  test.each([null, {}, { aborted: false }, new AbortController(), { addEventListener: () => 0 }])(
    "is more than %o",
    async (signal) => {
      const locks = createLocks(memory());
      expect(() => locks.acquire("key", { signal: signal as never })).toThrow(
        "Expected `signal` to be an AbortSignal",
      );
      await locks.close();
    },
  );
});

/** Jest belongs to the example in NestJS. */
function resolveFromJest(name: string): string {
  const jest = "jest";
  const example = createRequire(join(dist, "..", "..", "..", "examples", "nestjs", "package.json"));
  const manifest = example.resolve(`${jest}/package.json`);
  return name.startsWith(`${jest}/`)
    ? join(dirname(manifest), name.slice(`${jest}/`.length))
    : createRequire(manifest).resolve(name);
}
