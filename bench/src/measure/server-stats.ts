import type { Redis } from "ioredis";

/** The counters of the server since its start. */
export interface ServerStats {
  /** All commands, including those that scripts call, except `INFO`, because `INFO` reads these counters. */
  readonly commands: number;
  readonly cpuMs: number;
}

export async function readStats(admin: Redis): Promise<ServerStats> {
  const info = await admin.info("all");
  return { commands: commandsOf(info), cpuMs: cpuMsOf(info) };
}

/** The uptime in ms, with a resolution of one second. */
export async function uptimeOf(admin: Redis): Promise<number> {
  const info = await admin.info("server");
  return Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1]) * 1000;
}

function commandsOf(info: string): number {
  let calls = 0;
  for (const [, command, count] of info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (command !== "info") calls += Number(count);
  }
  return calls;
}

function cpuMsOf(info: string): number {
  let seconds = 0;
  for (const [, used] of info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)) seconds += Number(used);
  return seconds * 1000;
}
