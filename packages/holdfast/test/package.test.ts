import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies?: object;
  readonly peerDependenciesMeta: Readonly<Record<string, { optional: boolean }>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** The public names: values, then types. Who changes them changes what users rely on. */
const publicNames: Readonly<Record<string, { values: readonly string[]; types: readonly string[] }>> = {
  holdfast: {
    values: [
      "EngineError",
      "LeaseLostError",
      "LockError",
      "QuorumError",
      "WaitTimeoutError",
      "createLocks",
      "isLockError",
    ],
    types: [
      "AcquireOptions",
      "AcquireTrace",
      "AdoptOptions",
      "Clock",
      "Diagnostics",
      "Driver",
      "CountDownOptions",
      "Election",
      "Latch",
      "Latches",
      "LatchOptions",
      "LatchView",
      "LatchWait",
      "LatchWaitOptions",
      "LockKind",
      "PermitOptions",
      "ReadWrite",
      "ReentrantOptions",
      "Semaphore",
      "SemaphoreOptions",
      "Share",
      "Together",
      "WriteLease",
      "Acquired",
      "AcquireRequest",
      "Capabilities",
      "DriverListener",
      "Extension",
      "ExtendRequest",
      "Grant",
      "Pending",
      "Requeued",
      "Verified",
      "Words",
      "Validity",
      "HoldTrace",
      "Holder",
      "Lease",
      "ListOptions",
      "LockErrorCode",
      "LockEvent",
      "LockState",
      "Lockable",
      "Locks",
      "LocksOptions",
      "LossReason",
      "NodeState",
      "NodeView",
      "NodeVote",
      "Outcome",
      "Ran",
      "Random",
      "ReleaseTrace",
      "RenewTrace",
      "SerializedLease",
      "TryOptions",
      "Waiter",
    ],
  },
  "holdfast/memory": { values: ["memory"], types: ["MemoryOptions"] },
  "holdfast/redis": {
    values: ["redis", "redlock"],
    types: [
      "Connection",
      "RedisClient",
      "RedisOptions",
      "RedlockOptions",
      "Subscription",
      "SubscriptionListener",
    ],
  },
  "holdfast/testing": {
    values: ["driverConformance", "faulty", "faultyClient", "manualClock", "manualRandom", "twin"],
    types: [
      "Call",
      "Choice",
      "Conformance",
      "Faults",
      "FaultyOptions",
      "ManualClock",
      "MessagePredicate",
      "OpenedDriver",
      "Store",
      "Stored",
      "Twin",
      "TwinOptions",
    ],
  },
};

let manifest: Manifest;
let folder: string;

beforeAll(async () => {
  manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as Manifest;
  folder = await mkdtemp(join(tmpdir(), "holdfast-package-"));
  await install();
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

describe("the built package", () => {
  test("has an entry point for every public name, and no other", () => {
    const entryPoints = Object.keys(manifest.exports).filter((path) => path !== "./package.json");
    expect(entryPoints.map((path) => path.replace(/^\./, "holdfast"))).toEqual(Object.keys(publicNames));
  });

  test("has every file that its exports name", async () => {
    for (const [path, target] of Object.entries(manifest.exports)) {
      const files = typeof target === "string" ? [target] : Object.values(target);
      for (const file of files) {
        await expect(readFile(join(root, file)), `${path}: ${file}`).resolves.toBeDefined();
      }
    }
  });

  test("has no dependency that users must have", () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    for (const peer of Object.keys(manifest.peerDependencies)) {
      expect(manifest.peerDependenciesMeta[peer], peer).toEqual({ optional: true });
    }
  });

  test("imports nothing but itself and Node's own modules", async () => {
    const files = (await readdir(dist, { recursive: true })).filter((file) => /\.(js|d\.ts)$/.test(file));
    expect(files.length).toBeGreaterThan(20);
    for (const file of files) {
      for (const specifier of importsOf(await readFile(join(dist, file), "utf8"))) {
        expect(specifier, file).toMatch(/^(\.\.?\/|node:)/);
      }
    }
  });

  test("can be required from CommonJS", async () => {
    const program = `
      const { createLocks } = require("holdfast");
      const { memory } = require("holdfast/memory");
      const { redis } = require("holdfast/redis");
      const locks = createLocks(memory());
      locks.withLock("key", (lease) => typeof lease.fencingToken + " " + typeof redis).then(async (value) => {
        console.log(value);
        await locks.close();
      });`;
    await writeFile(join(folder, "program.cjs"), program);
    const { stdout } = await runNode(["program.cjs"]);
    expect(stdout.trim()).toBe("bigint function");
  });

  test("can be imported by an ES module", async () => {
    const program = `
      import { createLocks } from "holdfast";
      import { memory } from "holdfast/memory";
      const locks = createLocks(memory());
      console.log(await locks.withLock("key", () => "worked"));`;
    await writeFile(join(folder, "program.mjs"), program);
    const { stdout } = await runNode(["program.mjs"]);
    expect(stdout.trim()).toBe("worked");
  });

  test("has types that compile strictly where no client library is installed", async () => {
    await compile(`
      import { createLocks, isLockError, type Lease, type LocksOptions } from "holdfast";
      import { memory } from "holdfast/memory";
      import { redis, type Connection, type RedisClient } from "holdfast/redis";
      import { driverConformance, manualClock } from "holdfast/testing";

      const options: LocksOptions = { handover: undefined, maxWaiters: 5 };
      export const locks = createLocks(memory({ clock: manualClock() }), options);
      export const done: Promise<string> = locks.withLock("key", (lease: Lease) => String(lease.fencingToken));
      export const ofClient = (client: RedisClient | Connection) => createLocks(redis(client, { prefix: "p:" }));
      driverConformance({ test: (name, body) => [name, body], open: async () => ({ driver: memory() }) });
      done.catch((error: unknown) => isLockError(error, "wait-timeout") && error.key);
    `);
  });
});

describe.each(Object.entries(publicNames))("%s", (entryPoint, { values, types }) => {
  test("exports what is public, and nothing else", async () => {
    const program = `console.log(JSON.stringify(Object.keys(require("${entryPoint}"))))`;
    const { stdout } = await runNode(["-e", program]);
    expect((JSON.parse(stdout) as string[]).sort()).toEqual([...values].sort());
    const target = manifest.exports[entryPoint.replace("holdfast", ".")] as Readonly<Record<string, string>>;
    const declared = typesOf(await readFile(join(root, target["types"] as string), "utf8"));
    expect(declared.filter((name) => !values.includes(name)).sort()).toEqual([...types].sort());
  });
});

/** A project that has the package as npm would install it, and nothing else but the types of Node. */
async function install(): Promise<void> {
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "holdfast"), { recursive: true });
  await mkdir(join(modules, "@types"));
  await cp(dist, join(modules, "holdfast", "dist"), { recursive: true });
  await cp(join(root, "package.json"), join(modules, "holdfast", "package.json"));
  const nodeTypes = dirname(require.resolve("@types/node/package.json"));
  await symlink(nodeTypes, join(modules, "@types", "node"), "junction");
}

async function compile(source: string): Promise<void> {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    module: "NodeNext",
    target: "ES2022",
    types: ["node"],
    noEmit: true,
  };
  await writeFile(join(folder, "consumer.mts"), source);
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["consumer.mts"] }),
  );
  const compiler = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
  const { stdout } = await runNode([compiler, "-p", folder]).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
}

/** A fresh process that knows nothing of this one's options. */
function runNode(args: string[]): Promise<{ stdout: string }> {
  const env = { ...process.env };
  delete env["NODE_OPTIONS"];
  return promisify(execFile)(process.execPath, args, { cwd: folder, env });
}

function importsOf(code: string): string[] {
  const pattern =
    /^\s*(?:import|export)\b[^"'`;]*?\bfrom\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)|^import "([^"]+)"/gm;
  return Array.from(code.matchAll(pattern), ([, from, lazily, alone]) => from ?? lazily ?? alone ?? "");
}

/** All names that declarations export. */
function typesOf(declarations: string): string[] {
  const listed = Array.from(declarations.matchAll(/^export (?:type )?\{([^}]*)\}/gm), ([, names]) =>
    (names as string).split(",").map((name) =>
      name
        .trim()
        .replace(/^type /, "")
        .replace(/^.* as /, ""),
    ),
  ).flat();
  const own = Array.from(
    declarations.matchAll(/^export (?:declare )?(?:function|class|interface|type|const) (\w+)/gm),
    ([, name]) => name as string,
  );
  return [...listed, ...own].filter((name) => name !== "");
}
