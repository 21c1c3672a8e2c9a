import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import { exitOnSignals, optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import type { Pair } from "./pairs.ts";
import { toText } from "./report.ts";
import { failuresOf, runPair, type PairResult } from "./run/run-pair.ts";
import { prepare, type ToolchainName } from "./run/toolchains.ts";

// npm run verify:interop: runs this library and other libraries on the same locks.

const runs = fileURLToPath(new URL("../../interop/runs", import.meta.url));
const defaultCache = fileURLToPath(new URL("../../../node_modules/.cache/interop", import.meta.url));

async function main(): Promise<void> {
  const options = optionsOrExit("verify:interop", usage, parseOptions);
  const cache = resolve(options.cache ?? defaultCache);
  mkdirSync(cache, { recursive: true });
  const ready = installed(options.pairs, cache);
  if (ready.length < options.pairs.length) {
    process.exitCode = 1;
  }
  if (!options.isInstallOnly) {
    await run(ready, options, cache);
  }
}

/** Installs what the pairs need. @returns the pairs whose libraries are installed */
function installed(pairs: readonly Pair[], cache: string): Pair[] {
  const failed = new Set<ToolchainName>();
  for (const name of new Set(pairs.map(({ toolchain }) => toolchain))) {
    try {
      prepare(name, cache, (line) => log(`${name}: ${line}`));
    } catch (error) {
      failed.add(name);
      log(`${name}: not run, because ${(error as Error).message}`);
    }
  }
  return pairs.filter(({ toolchain }) => !failed.has(toolchain));
}

async function run(pairs: readonly Pair[], options: ResolvedOptions, cache: string): Promise<void> {
  const date = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  const folder = resolve(options.folder ?? join(runs, date));
  const { seconds, rounds, hasFaults } = options;
  const results: PairResult[] = [];
  for (const [index, pair] of pairs.entries()) {
    const started = performance.now();
    const own = join(folder, pair.name.replaceAll("/", "-"));
    const result = await runPair(pair, { seconds, rounds, hasFaults, cache }, own);
    const failures = failuresOf(result);
    const verdict = failures.length === 0 ? "passed" : `FAILED: ${failures.slice(0, 3).join("; ")}`;
    const duration = ((performance.now() - started) / 1_000).toFixed(0);
    log(`${index + 1}/${pairs.length} ${pair.name}: ${verdict} (${duration} s)`);
    results.push(result);
    if (failures.length > 0) {
      process.exitCode = 1;
    }
  }
  process.stdout.write(options.json ? `${JSON.stringify(results, undefined, 2)}\n` : toText(results));
}

function log(line: string): void {
  process.stderr.write(`verify:interop: ${line}\n`);
}

exitOnSignals();

main().catch((error: unknown) => {
  log(inspect(error));
  process.exit(1);
});
