import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { afterAll, afterEach, beforeAll, expect } from "vitest";

const require = createRequire(import.meta.url);
export const root = fileURLToPath(new URL("../..", import.meta.url));
export const dist = join(root, "dist");

/** Acquires one lock by the URL in its argument, and prints the result. */
export const program = `
    import { createLocks } from "holdfast";
    import { connect } from "holdfast/connect";
    try {
      const driver = await connect(process.argv[1], { commandTimeoutMs: 3_000 });
      const locks = createLocks(driver);
      console.log(await locks.tryWithLock("key", () => "worked").catch((error) => error.code));
      await locks.close();
    } catch (error) {
      console.log(error.name, error.code, error.message);
    }`;

export let folder: string;

export function onInstalledPackage(): void {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-package-"));
    await install();
  });

  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  afterEach(async () => {
    for (const name of ["ioredis", "redis"]) {
      await rm(join(folder, "node_modules", name), { recursive: true, force: true });
    }
  });
}

/** Creates a project that contains the package, as npm installs it, and the types of Node. */
async function install(): Promise<void> {
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "holdfast"), { recursive: true });
  await mkdir(join(modules, "@types"));
  await cp(dist, join(modules, "holdfast", "dist"), { recursive: true });
  await cp(join(root, "package.json"), join(modules, "holdfast", "package.json"));
  const nodeTypes = dirname(require.resolve("@types/node/package.json"));
  await symlink(nodeTypes, join(modules, "@types", "node"), "junction");
}

/** Installs a client library from the packages of this repository. */
export async function provide(name: string, from: string): Promise<void> {
  const ours = join(root, "..", "..", "node_modules", from);
  await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
  await symlink(ours, join(folder, "node_modules", name), "junction");
}

export async function run(url: string): Promise<string> {
  return (await runNode(["--input-type=module", "-e", program, url])).stdout.trim();
}

/** Compiles the program of a browser, with neither the types of Node nor any other library. */
export async function compileForBrowsers(source: string): Promise<void> {
  const types = join(folder, "node_modules", "@types");
  const hidden = join(folder, "types-of-node");
  await rename(types, hidden);
  try {
    await compile(source, { types: [], lib: ["ES2023", "ESNext.Disposable", "DOM"] });
  } finally {
    await rename(hidden, types);
  }
}

export async function compile(source: string, options: object = {}): Promise<void> {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    module: "NodeNext",
    target: "ES2022",
    types: ["node"],
    noEmit: true,
    ...options,
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

/** Runs Node without the options of this process. */
export function runNode(args: string[]): Promise<{ stdout: string }> {
  const env = { ...process.env };
  delete env["NODE_OPTIONS"];
  return promisify(execFile)(process.execPath, args, { cwd: folder, env });
}
