import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Where the server and a lone worker run. Left to itself, the scheduler puts a lone client now on the server's CPU and
 * now on another, and its round trips differ by a factor of two or more between one turn and the next. Crowds of workers
 * go where the scheduler likes: most machines have fewer CPUs than that.
 */
export interface Placement {
  readonly text: string;
  /** A list like "0,2"; `null`: on any CPU. */
  readonly serverCpus: string | null;
  readonly singleWorkerCpus: string | null;
}

/** The server on the first CPU that we may use, a lone worker on the others; where that cannot be, anywhere. */
export function choosePlacement(): Placement {
  const [first, ...others] = allowedCpus();
  const rest = others.join(",");
  if (first === undefined || others.length === 0 || !canPinTo(rest)) {
    return { text: "servers and workers on any CPU", serverCpus: null, singleWorkerCpus: null };
  }
  const text = `servers on CPU ${first}, a lone worker on CPU ${rest}, crowds on any`;
  return { text, serverCpus: String(first), singleWorkerCpus: rest };
}

/** What to put in front of a command line, so that it runs on these CPUs only. */
export function pinnedTo(cpus: string): [program: string, ...args: string[]] {
  return ["taskset", "--cpu-list", cpus];
}

function canPinTo(cpus: string): boolean {
  const [program, ...args] = pinnedTo(cpus);
  return spawnSync(program, [...args, "true"]).status === 0;
}

/** From a list like "0-1,4"; empty where the system does not tell. */
function allowedCpus(): number[] {
  if (process.platform !== "linux") return [];
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return (list ?? "").split(",").flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split("-", 2).map(Number);
    return from <= to ? Array.from({ length: to - from + 1 }, (_, index) => from + index) : [];
  });
}
