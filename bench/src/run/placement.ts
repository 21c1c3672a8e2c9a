import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * The CPUs of the server and of a single worker. Without pinning, the scheduler sometimes puts a single client on the server's CPU.
 * Its round trips then differ by a factor of two or more between turns. Groups of workers are not pinned, because most machines
 * have fewer CPUs than workers.
 */
export interface Placement {
  readonly text: string;
  /** A list like "0,2"; `null`: on any CPU. */
  readonly serverCpus: string | null;
  readonly singleWorkerCpus: string | null;
}

/**
 * Pins servers to the first allowed CPU, and a single worker to the others. Without a second CPU or without `taskset`, nothing is
 * pinned.
 */
export function choosePlacement(): Placement {
  const [first, ...others] = allowedCpus();
  const rest = others.join(",");
  if (first === undefined || others.length === 0 || !canPinTo(rest)) {
    return { text: "servers and workers on any CPU", serverCpus: null, singleWorkerCpus: null };
  }
  const text = `servers on CPU ${first}, a single worker on CPU ${rest}, groups of workers on any CPU`;
  return { text, serverCpus: String(first), singleWorkerCpus: rest };
}

/** The prefix of a command line that restricts the command to these CPUs. */
export function pinnedTo(cpus: string): [program: string, ...args: string[]] {
  return ["taskset", "--cpu-list", cpus];
}

/** Restricts all threads of a running process to these CPUs. Threads and children that start later inherit the restriction. */
export function pinProcess(pid: number, cpus: string): void {
  const [program] = pinnedTo(cpus);
  spawnSync(program, ["--all-tasks", "--cpu-list", "--pid", cpus, String(pid)]);
}

function canPinTo(cpus: string): boolean {
  const [program, ...args] = pinnedTo(cpus);
  return spawnSync(program, [...args, "true"]).status === 0;
}

/** Parsed from a list like "0-1,4"; empty if the system is not Linux. */
function allowedCpus(): number[] {
  if (process.platform !== "linux") return [];
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return (list ?? "").split(",").flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split("-", 2).map(Number);
    return from <= to ? Array.from({ length: to - from + 1 }, (_, index) => from + index) : [];
  });
}
