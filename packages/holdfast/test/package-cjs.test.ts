import { readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { describe, expect, test } from "vitest";
import { startRedis } from "@holdfast/test-kit";

import { dist, folder, onInstalledPackage, provide, runNode } from "./support/installed-package.ts";
import { publicNames } from "./support/public-names.ts";
import { onRedis } from "./support/servers.ts";

const require = createRequire(import.meta.url);
const bundle = join(dist, "cjs");
/** The example in CommonJS has the lowest TypeScript. */
const lowest = join(dist, "..", "..", "..", "examples", "nestjs", "package.json");

onInstalledPackage();

describe("`require` of the built package", () => {
  test("gives a program the same copy as `import`", async () => {
    const program = `
      const required = require("holdfast");
      const { memory } = require("holdfast/memory");
      import("holdfast").then(async ({ createLocks, isLockError }) => {
        const locks = required.createLocks(memory());
        console.log(required.createLocks === createLocks, await locks.withLock("key", ({ key }) => key));
        await locks.close();
      });`;
    await writeFile(join(folder, "program.cjs"), program);
    const { stdout } = await runNode(["program.cjs"]);
    expect(stdout.trim()).toBe("true key");
  });

  test.each(Object.entries(publicNames))(
    "%s has a bundle with the public names",
    (entryPoint, { values }) => {
      const path = entryPoint === "holdfast" ? "index" : entryPoint.slice("holdfast/".length);
      const exported = Object.keys(require(join(bundle, `${path}.cjs`)) as object);
      expect(exported.sort()).toEqual([...values].sort());
    },
  );

  test("loads no engine that a program does not use", async () => {
    const program = `
      require(process.argv[1]);
      const files = Object.keys(require.cache).map((file) => require("node:path").basename(file));
      console.log(files.filter((file) => /etcd|mysql|nacos|postgres|zookeeper|create[.]cjs/.test(file)).join());`;
    const { stdout } = await runNode(["-e", program, join(bundle, "memory.cjs")]);
    expect(stdout.trim()).toBe("");
  });

  test("imports nothing dynamically, because Jest cannot", async () => {
    const files = (await readdir(bundle, { recursive: true })).filter((file) => file.endsWith(".cjs"));
    for (const file of files) {
      expect(await readFile(join(bundle, file), "utf8"), file).not.toMatch(/\bimport\s*\(/);
    }
  });
});

describe("two copies of the package in one process", () => {
  /** A program with the ES modules as `esm`, and the bundle for CommonJS as `cjs`. */
  async function run(body: string): Promise<string[]> {
    const load = (name: string): string => JSON.stringify(join(bundle, `${name}.cjs`));
    const program = `
      import * as esm from "holdfast";
      import { memory } from "holdfast/memory";
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      const cjs = require(${load("index")});
      const cjsMemory = require(${load("memory")}).memory;
      const codeOf = (call) => call.then(() => "none", (error) => error.code);
      ${body}`;
    await writeFile(join(folder, "two-copies.mjs"), program);
    return (await runNode(["two-copies.mjs"])).stdout.trim().split("\n");
  }

  test("recognise each other's errors", async () => {
    const lines = await run(`
      console.log(cjs.createLocks !== esm.createLocks);
      const locks = cjs.createLocks(memory());
      await locks.acquire("key");
      const error = await locks.acquire("key", { waitMs: 0 }).catch((caught) => caught);
      console.log(esm.isLockError(error, "wait-timeout"), cjs.isLockError(error), typeof error.holder.fencingToken);
      await locks.close();`);
    expect(lines).toEqual(["true", "true true bigint"]);
  });

  test("find a self-deadlock, and hand a lock over in memory, with `Locks` of one copy on a driver of the other", async () => {
    const lines = await run(`
      for (const [createLocks, driver] of [[esm.createLocks, cjsMemory()], [cjs.createLocks, memory()]]) {
        const locks = createLocks(driver);
        console.log(await locks.withLock("key", () => codeOf(locks.acquire("key"))));
        const first = await locks.acquire("key");
        const second = locks.acquire("key");
        await first.release();
        console.log((await second).fencingToken > first.fencingToken);
        await locks.close();
      }`);
    expect(lines).toEqual(["self-deadlock", "true", "self-deadlock", "true"]);
  });

  test("report a wait that was too short for a reply as a timeout, whichever copy made the error", async () => {
    const lines = await run(`
      const failing = memory();
      const acquire = failing.acquire.bind(failing);
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      let calls = 0;
      failing.acquire = (request) => (calls += 1) === 1 ? acquire(request) : ({
        result: pause(5).then(() => {
          throw new cjs.EngineError("no reply", { outcome: "unknown", retryable: true });
        }),
        cancel() {},
      });
      const locks = esm.createLocks(failing);
      const lease = await locks.acquire("key");
      const waiting = codeOf(locks.acquire("key", { waitMs: 200 }));
      await pause(190);
      await lease.release();
      console.log(await waiting);
      await locks.close();`);
    expect(lines).toEqual(["wait-timeout"]);
  });
});

describe("a project in CommonJS compiles", () => {
  const source = `
    import { createLocks, isLockError, WaitTimeoutError, type Lease } from "holdfast";
    import { memory } from "holdfast/memory";
    import { redis } from "holdfast/redis";
    import { connect, type ConnectOptions } from "holdfast/connect";
    import Redlock, { ResourceLockedError } from "holdfast/compat/redlock";

    const locks = createLocks(memory());
    export const holderOf = (error: unknown): string | undefined =>
      isLockError(error, "wait-timeout") ? error.holder?.owner : undefined;
    export const isTimeout = (error: unknown): error is WaitTimeoutError => error instanceof WaitTimeoutError;
    export const options: ConnectOptions = { maxTtlMs: 1_000 };
    export { redis, connect, Redlock, ResourceLockedError };
    void locks.withLock("key", (lease: Lease) => lease.key).then(console.log).then(() => locks.close());
  `;
  const versions = [
    {
      name: "the lowest TypeScript",
      compiler: lowest,
      modules: { module: "commonjs", moduleResolution: "node10" },
    },
    { name: "the lowest TypeScript", compiler: lowest, modules: { module: "node16" } },
    { name: "the newest TypeScript", compiler: import.meta.url, modules: { module: "nodenext" } },
    { name: "the newest TypeScript", compiler: import.meta.url, modules: { module: "commonjs" } },
  ];

  test.each(versions)("by $name with $modules, and runs", async ({ compiler, modules }) => {
    await writeFile(join(folder, "consumer.ts"), source);
    const compilerOptions = {
      ...modules,
      strict: true,
      skipLibCheck: false,
      esModuleInterop: true,
      target: "ES2022",
      lib: ["ES2023", "ESNext.Disposable"],
      types: ["node"],
      outDir: "out",
    };
    await writeFile(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["consumer.ts"] }),
    );
    const tsc = join(dirname(createRequire(compiler).resolve("typescript/package.json")), "bin", "tsc");
    const { stdout } = await runNode([tsc, "-p", folder]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
    expect((await runNode([join("out", "consumer.js")])).stdout.trim()).toBe("key");
  });
});

onRedis("connect, of the bundle for CommonJS,", () => {
  test("loads the client library with `require`", async () => {
    const server = await startRedis();
    try {
      await provide("ioredis", "ioredis");
      const program = `
        const { createLocks } = require("./node_modules/holdfast/dist/cjs/index.cjs");
        const { connect } = require("./node_modules/holdfast/dist/cjs/connect.cjs");
        connect("redis://127.0.0.1:${server.port}").then(async (driver) => {
          const locks = createLocks(driver);
          console.log(await locks.withLock("key", ({ key }) => key));
          await locks.close();
        });`;
      await writeFile(join(folder, "connect.cjs"), program);
      expect((await runNode(["connect.cjs"])).stdout.trim()).toBe("key");
    } finally {
      await server.stop();
    }
  });
});
