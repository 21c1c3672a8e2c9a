import type { Redis } from "ioredis";

/** The counters of the server since its start. */
export interface ServerStats {
  /** Every command, those that scripts call included; not the `INFO` that asks. */
  readonly commands: number;
  readonly cpuMs: number;
}

export async function readStats(admin: Redis): Promise<ServerStats> {
  const info = await admin.info("all");
  return { commands: commandsOf(info), cpuMs: cpuMsOf(info) };
}

/** In ms, though the server counts whole seconds. */
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
