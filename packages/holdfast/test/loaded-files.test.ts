import { readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

import { beforeAll, describe, expect, test } from "vitest";

import { dist, root } from "./support/installed-package.ts";

/** Entry points for cases without a lock. No other entry point loads their files. */
const apart = ["fencing", "optimistic", "routing", "cron", "watchdog-thread", "otel", "prometheus"];

let entries: Readonly<Record<string, { readonly import: { readonly default: string } }>>;

beforeAll(async () => {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    readonly exports: typeof entries;
  };
  entries = manifest.exports;
});

/** The folders of the engines that only their own entry points load. */
const engines = ["store", "postgres", "mysql", "etcd", "zookeeper", "nacos", "redis/layouts"].map(
  (name) => `drivers/${name}`,
);

/** All files of the built package that an import of `file` loads. */
async function loadedBy(file: string, found: Set<string> = new Set()): Promise<Set<string>> {
  if (!found.has(file)) {
    found.add(file);
    for (const [, imported] of (await readFile(file, "utf8")).matchAll(/\bfrom "(\.[^"]+)"/g)) {
      await loadedBy(join(dirname(file), imported as string), found);
    }
  }
  return found;
}

/** The folders up to a depth: 1, or 2 for the drivers by their names. */
async function foldersLoadedBy(entry: string, depth = 1): Promise<Set<string>> {
  const files = await loadedBy(join(root, entries[entry]?.import.default as string));
  return new Set([...files].map((file) => relative(dist, file).split(/[\\/]/).slice(0, depth).join("/")));
}

describe("the built package", () => {
  test.each([".", "./redis", "./memory", "./http", "./connect"])(
    "loads no files of the entry points without locks for %s",
    async (entry) => {
      const folders = await foldersLoadedBy(entry);
      expect(folders.size).toBeGreaterThan(1);
      expect([...folders].filter((folder) => [...apart, "telemetry", "compat"].includes(folder))).toEqual([]);
    },
  );

  test.each([".", "./redis", "./memory", "./http", "./connect", "./compat/redis-semaphore"])(
    "loads no files of other engines for %s",
    async (entry) => {
      const folders = [...(await foldersLoadedBy(entry, 2)), ...(await foldersLoadedBy(entry, 3))];
      expect(folders.filter((folder) => engines.includes(folder))).toEqual([]);
    },
  );

  test("loads its own engine, the store and no other driver for holdfast/postgres", async () => {
    const folders = await foldersLoadedBy("./postgres", 2);
    expect([...folders].filter((folder) => folder.startsWith("drivers/")).sort()).toEqual([
      "drivers/polling-watch.js",
      "drivers/postgres",
      "drivers/store",
    ]);
  });

  test.each(apart)("loads neither a driver nor a lock for holdfast/%s", async (entry) => {
    const folders = await foldersLoadedBy(`./${entry}`);
    for (const folder of ["drivers", "kinds", "lease", "local", "create-locks.js"]) {
      expect(folders).not.toContain(folder);
    }
  });
});
