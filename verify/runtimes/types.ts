import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cached } from "./cache.ts";
import { tryCommand } from "./command.ts";
import { failed, passed, runJobs, type Outcome } from "./outcome.ts";
import { versionOf } from "./project.ts";
import { compilers } from "./roster.ts";
import { installPackages } from "./runtime-programs.ts";

/** One compiler with one module setting. */
export interface TypesResult {
  /** The exact version of TypeScript. */
  readonly compiler: string;
  readonly setting: string;
  readonly outcome: Outcome;
}

interface Setting {
  readonly title: string;
  readonly type: "module" | "commonjs";
  readonly options: object;
}

export const settings: readonly Setting[] = [
  { title: "`nodenext`, ES modules", type: "module", options: { module: "nodenext" } },
  { title: "`nodenext`, CommonJS", type: "commonjs", options: { module: "nodenext" } },
  { title: "`node16`, CommonJS", type: "commonjs", options: { module: "node16" } },
  { title: "`commonjs`", type: "commonjs", options: { module: "commonjs" } },
  {
    title: "`commonjs`, `node10`",
    type: "commonjs",
    options: { module: "commonjs", moduleResolution: "node10" },
  },
  {
    title: "`esnext`, `bundler`",
    type: "module",
    options: { module: "esnext", moduleResolution: "bundler" },
  },
];

const consumer = `
import { createLocks, isLockError, WaitTimeoutError, type Lease, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { connect, type ConnectOptions } from "holdfast/connect";
import { fenced } from "holdfast/fencing";
import Redlock, { ResourceLockedError } from "holdfast/compat/redlock";

export const holderOf = (error: unknown): string | undefined =>
  isLockError(error, "wait-timeout") ? error.holder?.owner : undefined;
export const isTimeout = (error: unknown): error is WaitTimeoutError => error instanceof WaitTimeoutError;
export const options: ConnectOptions = { maxTtlMs: 1_000 };
export { redis, connect, fenced, Redlock, ResourceLockedError };

async function keyOf(locks: Locks): Promise<string> {
  await using lease: Lease = await locks.acquire("key");
  return lease.key;
}

const locks = createLocks(memory());
void keyOf(locks).then(console.log).then(() => locks.close());
`;

/** Compiles the consumer with every compiler and module setting, and runs the results. */
export async function runTypes(
  folder: string,
  onResult: (result: TypesResult, total: number) => void,
): Promise<TypesResult[]> {
  const dependencies = Object.fromEntries(
    compilers.map((version) => [`typescript-${version}`, `npm:typescript@${version}`]),
  );
  const cache = await cached("typescript", (incomplete) => installPackages(incomplete, dependencies));
  const installed = await Promise.all(
    compilers.map(async (name) => {
      const path = join(cache, "node_modules", `typescript-${name}`);
      return { path, version: await versionOf(path) };
    }),
  );
  const jobs = installed.flatMap((compiler) => settings.map((setting) => ({ compiler, setting })));
  return runJobs(jobs, async ({ compiler: { path, version }, setting }) => {
    const own = join(folder, `${version}-${settings.indexOf(setting)}`);
    const outcome = await compileAndRun(own, join(path, "bin", "tsc"), setting, version);
    const result = { compiler: version, setting: setting.title, outcome };
    onResult(result, jobs.length);
    return result;
  });
}

async function compileAndRun(
  folder: string,
  compiler: string,
  { type, options }: Setting,
  version: string,
): Promise<Outcome> {
  const resolution = "moduleResolution" in options ? options.moduleResolution : undefined;
  const major = Number.parseInt(version, 10);
  if (resolution === "node10" && major >= 7) {
    return { state: "absent" };
  }
  const compilerOptions = {
    ...options,
    ...(resolution === "node10" && major === 6 ? { ignoreDeprecations: "6.0" } : {}),
    strict: true,
    skipLibCheck: false,
    esModuleInterop: true,
    target: "ES2022",
    lib: ["ES2023", "ESNext.Disposable"],
    types: ["node"],
    outDir: "out",
    rootDir: ".",
  };
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ type }));
  await writeFile(join(folder, "consumer.ts"), consumer);
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
  const compiled = await tryCommand(process.execPath, [compiler, "-p", folder], { folder });
  if (compiled.code !== 0) {
    return failed(...compiled.stdout.trim().split("\n").slice(0, 3));
  }
  const { stdout, stderr } = await tryCommand(process.execPath, [join("out", "consumer.js")], { folder });
  return stdout.trim() === "key" ? passed : failed(`the compiled program failed: ${stderr.trim()}`);
}
