import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from "node:os";
import { promisify } from "node:util";
import type { Placement } from "./placement.ts";

/** The environment of the measurements: enough to judge the figures, and nothing that identifies the machine. */
export interface Environment {
  readonly node: string;
  /** The servers of the run with their versions. */
  readonly servers: readonly string[];
  readonly system: string;
  readonly cpu: string;
  readonly cpus: number;
  readonly placement: string;
  readonly memoryGiB: number;
  /** The load of the minute before the run, because the work of other programs affects every figure. */
  readonly loadAverage: number;
  /** The versions of the measured packages. */
  readonly versions: Readonly<Record<string, string>>;
}

export async function describeEnvironment(
  servers: readonly string[],
  placement: Placement,
): Promise<Environment> {
  return {
    node: process.version,
    servers,
    system: `${platform()} ${arch()}`,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cpus: availableParallelism(),
    placement: placement.text,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    versions: await packageVersions(),
  };
}

/** Reads the exact versions from this package's manifest, because most peers do not export their own. */
async function packageVersions(): Promise<Readonly<Record<string, string>>> {
  const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
    dependencies: Record<string, string>;
  };
  return manifest.dependencies;
}

/**
 * The commit of the measured source; `dirty` if tracked files differ from the commit. Records do not count, because a run does not
 * read the records that earlier runs have written. Without git the commit is unknown.
 */
export async function describeCommit(): Promise<string> {
  try {
    const commit = await git("rev-parse", "--short=8", "HEAD");
    const changes = await git("status", "--porcelain", "-uno", "--", ":/", ":(exclude,top)bench/results");
    return changes === "" ? commit : `${commit}-dirty`;
  } catch {
    return "unknown";
  }
}

async function git(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("git", args, { cwd: import.meta.dirname });
  return stdout.trim();
}
