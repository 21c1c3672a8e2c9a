import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import { beforeAll, describe, expect, test } from "vitest";
import { startRedis, stablePort } from "@holdfast/test-kit";
import { bundleForBrowsers } from "@holdfast/test-kit/edge";

import {
  compile,
  compileForBrowsers,
  dist,
  folder,
  onInstalledPackage,
  program,
  provide,
  root,
  run,
  runNode,
} from "./support/installed-package.ts";
import { publicNames } from "./support/public-names.ts";
import { onRedis } from "./support/servers.ts";

/** The files that load client libraries, and the libraries. */
const lazyLoaders: Readonly<Record<string, string>> = {
  [join("drivers", "connect", "load-client.js")]: "ioredis|redis",
  [join("drivers", "connect", "postgres.js")]: "pg",
  [join("drivers", "connect", "mysql.js")]: "mysql2/promise",
};

/** The folders of entry points for one library, and the library. */
const bound: Readonly<Record<string, string>> = { otel: "@opentelemetry/api", prometheus: "prom-client" };

onInstalledPackage();

/** The formats of an entry point, each with its types and its code. */
interface EntryPoint {
  readonly import: { readonly types: string; readonly default: string };
  readonly require: { readonly types: string; readonly default: string };
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | EntryPoint>>;
  readonly typesVersions: { readonly "*": Readonly<Record<string, readonly string[]>> };
  readonly dependencies?: object;
  readonly peerDependenciesMeta: Readonly<Record<string, { optional: boolean }>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

let manifest: Manifest;

beforeAll(async () => {
  manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as Manifest;
});

describe("the built package", () => {
  test("has an entry point for every public name, and no other", () => {
    const entryPoints = Object.keys(manifest.exports).filter((path) => path !== "./package.json");
    expect(entryPoints.map((path) => path.replace(/^\./, "holdfast"))).toEqual(Object.keys(publicNames));
  });

  test("has every file that its exports name", async () => {
    for (const [path, target] of Object.entries(manifest.exports)) {
      for (const file of filesOf(target)) {
        await expect(readFile(join(root, file)), `${path}: ${file}`).resolves.toBeDefined();
      }
    }
  });

  test("has the types of every entry point for resolution without `exports`, and names no other", () => {
    const types = Object.entries(manifest.exports).flatMap(([path, target]) =>
      typeof target === "string" || path === "." ? [] : [[path.slice(2), [target.import.types]]],
    );
    expect(manifest.typesVersions["*"]).toEqual(Object.fromEntries(types));
  });

  test("has no required dependency", () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    for (const peer of Object.keys(manifest.peerDependencies)) {
      expect(manifest.peerDependenciesMeta[peer], peer).toEqual({ optional: true });
    }
  });

  test("imports only itself, Node's own modules, and lazily the client libraries of `connect`", async () => {
    const files = (await readdir(dist, { recursive: true })).filter((file) => /\.(js|d\.ts)$/.test(file));
    expect(files.length).toBeGreaterThan(20);
    for (const file of files) {
      for (const specifier of importsOf(await readFile(join(dist, file), "utf8"))) {
        const library = lazyLoaders[file] ?? bound[dirname(file)] ?? "no-library";
        expect(specifier, file).toMatch(new RegExp(`^(\\.\\.?/|node:|(${library})$)`));
      }
    }
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

  test.each(["holdfast", "holdfast/http", "holdfast/memory", "holdfast/fencing", "holdfast/upstash"])(
    "bundles %s for browsers, without a module of Node",
    async (entryPoint) => {
      const code = await bundleForBrowsers({ source: `export * from "${entryPoint}"`, folder });
      expect(code).not.toMatch(/\b(require|import)\b[ (]*"/);
    },
  );

  test("has types that compile strictly where no client library is installed", async () => {
    await compile(`
      import { createLocks, isLockError, type Lease, type LocksOptions } from "holdfast";
      import { memory } from "holdfast/memory";
      import { redis, type Connection, type RedisClient } from "holdfast/redis";
      import { connect, type ConnectOptions } from "holdfast/connect";
      import { postgres, type PostgresClient } from "holdfast/postgres";
      import { driverConformance, manualClock } from "holdfast/testing";

      const options: LocksOptions = { handover: undefined, maxWaiters: 5 };
      export const locks = createLocks(memory({ clock: manualClock() }), options);
      export const done: Promise<string> = locks.withLock("key", (lease: Lease) => String(lease.fencingToken));
      export const ofClient = (client: RedisClient | Connection) => createLocks(redis(client, { prefix: "p:" }));
      export const inDatabase = (client: PostgresClient) => createLocks(postgres(client, { schema: "locks" }));
      const connection: ConnectOptions = { password: "p", tlsCaFile: undefined, maxTtlMs: 1_000 };
      export const byUrl = async () => createLocks(await connect("redlocks://a,b,c", connection));
      driverConformance({ test: (name, body) => [name, body], open: async () => ({ driver: memory() }) });
      done.catch((error: unknown) => isLockError(error, "wait-timeout") && error.key);
    `);
  });

  test("has types for browsers that compile strictly without the types of Node", async () => {
    await compileForBrowsers(`
      import { createLocks, type Lease } from "holdfast";
      import { fenced } from "holdfast/fencing";
      import { http } from "holdfast/http";
      import { memory } from "holdfast/memory";
      import { upstash, type UpstashClient } from "holdfast/upstash";

      export const page = createLocks(http("https://locks.example", { token: "t" }));
      export const locks = createLocks(memory());
      export const ofClient = (client: UpstashClient) => createLocks(upstash(client));
      export const done = locks.withLock("key", (lease: Lease) => [lease.signal.aborted, fenced]);
    `);
  });
});

describe("connect, of the built package,", () => {
  test("names the library to install if none is installed", async () => {
    expect(await run("redis://user:secret@127.0.0.1")).toBe(
      "LockError unsupported connect() needs a client library, and ioredis or node-redis is not installed: npm install ioredis",
    );
    expect(await run("redis://user:secret@127.0.0.1?client=node-redis")).toBe(
      "LockError unsupported connect() needs a client library, and node-redis is not installed: npm install redis",
    );
    expect(await run("memory:")).toBe("{ ran: true, value: 'worked' }");
  });

  test("does not skip an installed library that is broken", async () => {
    const broken = join(folder, "node_modules", "ioredis");
    await mkdir(broken);
    await writeFile(join(broken, "package.json"), '{ "name": "ioredis", "main": "index.js" }');
    await writeFile(join(broken, "index.js"), 'require("standard-as-callback");');
    await provide("redis", "redis");
    expect(await run("redis://127.0.0.1")).toMatch(
      /^Error MODULE_NOT_FOUND Cannot find module 'standard-as-callback'/,
    );
  });

  test.each([
    ["redis", "node-redis", ["redis"]],
    ["ioredis", "ioredis", ["redis", "ioredis"]],
  ])("uses %s if it is installed, and ioredis before node-redis", async (_name, taken, installed) => {
    for (const name of installed) {
      await provide(name, name);
    }
    const tried = `${program}
      const loaded = Object.keys((await import("node:module")).createRequire(import.meta.url).cache);
      console.log(["ioredis", "@redis"].filter((name) => loaded.some((path) => path.includes(name + sep))));
      import { sep } from "node:path";`;
    const url = `redis://127.0.0.1:${await stablePort()}`;
    const { stdout } = await runNode(["--input-type=module", "-e", tried, url]);
    expect(stdout.trim().split("\n")).toEqual(["engine-unavailable", `[ '${taken.replace("node-", "@")}' ]`]);
  });
});

onRedis("connect, of the built package and on a server,", () => {
  test.each([
    ["ioredis 6", "ioredis", "ioredis"],
    ["ioredis 5", "ioredis", "ioredis5"],
    ["node-redis 6", "redis", "redis"],
    ["node-redis 5", "redis", "redis5"],
    ["node-redis 4", "redis", "redis4"],
  ])("locks with %s, and its process ends without an exit call", async (_library, name, from) => {
    const server = await startRedis();
    await server.client().call("ACL", "SETUSER", "app", "on", ">p@ss", "~*", "&*", "+@all");
    await server.client().call("ACL", "SETUSER", "default", "resetpass");
    try {
      await provide(name, from);
      expect(await run(`redis://app:p%40ss@127.0.0.1:${server.port}/2`)).toBe(
        "{ ran: true, value: 'worked' }",
      );
    } finally {
      await server.stop();
    }
  });
});

describe.each(Object.entries(publicNames))("%s", (entryPoint, { values, types }) => {
  test("exports the public names, and no others", async () => {
    const library = bound[entryPoint.replace("holdfast/", "")];
    if (library !== undefined) {
      await provide(library, library);
    }
    const program = `console.log(JSON.stringify(Object.keys(require("${entryPoint}"))))`;
    const { stdout } = await runNode(["-e", program]);
    const names = (JSON.parse(stdout) as string[]).filter((name) => name !== "__esModule"); // added beside a default export
    expect(names.sort()).toEqual([...values].sort());
    const target = manifest.exports[entryPoint.replace("holdfast", ".")] as EntryPoint;
    const declared = typesOf(await readFile(join(root, target.import.types), "utf8"));
    expect(declared.filter((name) => !values.includes(name)).sort()).toEqual([...types].sort());
  });
});

function filesOf(target: string | object): string[] {
  return typeof target === "string"
    ? [target]
    : Object.values(target as Record<string, string | object>).flatMap(filesOf);
}

function importsOf(code: string): string[] {
  const pattern =
    /^\s*(?:import|export)\b[^"'`;]*?\bfrom\s*"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)|^import "([^"]+)"/gm;
  return Array.from(code.matchAll(pattern), ([, from, lazily, alone]) => from ?? lazily ?? alone ?? "");
}

/** All exported names of declarations. */
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
