import { readdirSync, readFileSync } from "node:fs";

/** Linux counts a process's time in hundredths of a second. */
const tickMs = 10;

interface ProcessTimes {
  readonly pid: number;
  readonly parent: number;
  readonly cpuMs: number;
}

/** The process and its children. PostgreSQL has a process for each connection. Only the process itself if the system is not Linux. */
export function processesOf(pid: number): readonly number[] {
  const children = allTimes().filter(({ parent }) => parent === pid);
  return [pid, ...children.map((child) => child.pid)];
}

/** The CPU time of a process and its children, also of those that have ended. NaN if the system is not Linux. */
export function cpuMsOf(pid: number): number {
  const times = allTimes().filter((one) => one.pid === pid || one.parent === pid);
  return times.length === 0 ? Number.NaN : times.reduce((total, { cpuMs }) => total + cpuMs, 0);
}

function allTimes(): ProcessTimes[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => timesOf(Number(name)) ?? []);
}

/** `undefined`: the process has ended. */
function timesOf(pid: number): ProcessTimes | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    // User and system time, of the process and of its children that have ended.
    const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0);
    return { pid, parent: Number(fields[1]), cpuMs: ticks * tickMs };
  } catch {
    return undefined;
  }
}
