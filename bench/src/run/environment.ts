import { readFile } from "node:fs/promises";
import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from "node:os";
import type { Redis } from "ioredis";
import type { Placement } from "./placement.ts";

/** On what the figures were taken: enough to judge them, nothing that identifies the machine. */
export interface Environment {
  readonly node: string;
  readonly redis: string;
  readonly system: string;
  readonly cpu: string;
  readonly cpus: number;
  readonly placement: string;
  readonly memoryGiB: number;
  /** Of the last minute before the run: another program's work is in every figure. */
  readonly loadAverage: number;
  /** Of the packages that take part. */
  readonly versions: Readonly<Record<string, string>>;
}

export async function describeEnvironment(admin: Redis, placement: Placement): Promise<Environment> {
  const info = await admin.info("server");
  return {
    node: process.version,
    redis: /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown",
    system: `${platform()} ${arch()}`,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cpus: availableParallelism(),
    placement: placement.text,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    versions: await packageVersions(),
  };
}

/** From our own manifest, where they are exact: most peers do not export theirs. */
async function packageVersions(): Promise<Readonly<Record<string, string>>> {
  const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
    dependencies: Record<string, string>;
  };
  return manifest.dependencies;
}
