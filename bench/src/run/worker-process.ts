import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { kazooProgram, pythonEnv } from "./kazoo.ts";
import { pinnedTo } from "./placement.ts";
import type { Load, Measurement, Memory, Reply, Request } from "./protocol.ts";
import type { ContestantName, Topology } from "./contestant-list.ts";

const program = fileURLToPath(new URL("../worker.js", import.meta.url));
const replyWithinMs = 60_000;

/** Where a worker connects to: the ports of Redis servers, separated by commas, or the address of a server of another engine. */
export interface Target {
  readonly topology: Topology;
  readonly address: string;
}

/** The parent's side of a worker process. Only one call runs at a time. A call rejects if the worker ends or does not reply. */
export class WorkerProcess implements AsyncDisposable {
  readonly settings: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, settings: string) {
    this.#child = child;
    this.settings = settings;
  }

  static async open(
    contestant: ContestantName,
    { topology, address }: Target,
    cpus: string | null,
  ): Promise<WorkerProcess> {
    const { command, options } = programOf(contestant);
    const [executable, ...args] = cpus === null ? command : [...pinnedTo(cpus), ...command];
    const child = spawn(executable, [...args, contestant, topology, address], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      ...options,
    });
    try {
      const reply = await nextReply(child);
      if (reply.outcome !== "ready") throw new Error(`Expected the worker to be ready, got ${reply.outcome}`);
      return new WorkerProcess(child, reply.settings);
    } catch (error) {
      await end(child);
      throw error;
    }
  }

  async start(load: Load): Promise<void> {
    await this.#call({ call: "start", load });
  }

  async begin(): Promise<void> {
    await this.#call({ call: "begin" });
  }

  async end(): Promise<Measurement> {
    const reply = await this.#call({ call: "end" });
    if (reply.outcome !== "measured") throw new Error(`Expected a measurement, got ${reply.outcome}`);
    return measurementFrom(reply.measurement);
  }

  async memory(): Promise<Memory> {
    const reply = await this.#call({ call: "memory" });
    if (reply.outcome !== "weighed") throw new Error(`Expected the memory in use, got ${reply.outcome}`);
    return reply.memory;
  }

  async stop(): Promise<void> {
    await this.#call({ call: "stop" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#child);
  }

  async #call(request: Request): Promise<Reply> {
    if (hasEnded(this.#child)) throw new Error(exitText(this.#child.exitCode, this.#child.signalCode));
    const reply = nextReply(this.#child);
    // A closed channel needs no other handling, because the end of the process rejects the reply.
    this.#child.send(request, () => {});
    return reply;
  }
}

interface Program {
  readonly command: readonly [executable: string, ...args: string[]];
  readonly options: SpawnOptions;
}

/** With `--expose-gc`, the worker can collect garbage before it measures its memory. */
function programOf(contestant: ContestantName): Program {
  return contestant === "kazoo"
    ? { command: ["python3", kazooProgram], options: { serialization: "json", env: pythonEnv } }
    : { command: [process.execPath, "--expose-gc", program], options: { serialization: "advanced" } };
}

/** A worker that is no Node process sends arrays of numbers as JSON. */
function measurementFrom({ tasks, holds, ...rest }: Measurement): Measurement {
  return {
    ...rest,
    holds: Float64Array.from(holds),
    tasks: tasks.map((task) => ({ ...task, waitsMs: Float64Array.from(task.waitsMs) })),
  };
}

async function nextReply(child: ChildProcess): Promise<Reply> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    const reply = await Promise.race([answer(child, signal), exited(child, signal), replyTimeout(signal)]);
    if (reply.outcome === "failed") throw new Error(reply.reason);
    return reply;
  } finally {
    settled.abort();
  }
}

async function answer(child: ChildProcess, signal: AbortSignal): Promise<Reply> {
  const [reply] = (await once(child, "message", { signal })) as [Reply];
  return reply;
}

async function exited(child: ChildProcess, signal: AbortSignal): Promise<never> {
  const [code, cause] = (await once(child, "exit", { signal })) as [number | null, string | null];
  throw new Error(exitText(code, cause));
}

async function replyTimeout(signal: AbortSignal): Promise<never> {
  await sleep(replyWithinMs, undefined, { signal });
  throw new Error(`its process did not answer within ${replyWithinMs} ms`);
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function exitText(code: number | null, cause: string | null): string {
  return `its process ended (${cause ?? `code ${code}`})`;
}

/** Kills the process, because waiters on a hot key would otherwise continue until all had their turns. */
async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}
