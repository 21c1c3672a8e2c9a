import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { pinnedTo } from "./placement.ts";

type ServerProcess = ChildProcessByStdio<null, Readable, null>;

const startWithinMs = 10_000;
const stopWithinMs = 3_000;

/** A private `redis-server` without persistence, which ends with this process. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #killOnExit: () => void;

  private constructor(child: ChildProcess, port: number, folder: string) {
    this.#child = child;
    this.port = port;
    this.#folder = folder;
    this.#killOnExit = () => {
      child.kill("SIGKILL");
      this.#clear();
    };
    process.once("exit", this.#killOnExit);
  }

  /** @param cpus a list like "0,2"; `null`: any CPU */
  static async start(cpus: string | null): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
    const port = await freePort();
    const address = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
    const child = spawnOn(cpus, "redis-server", [...address, "--save", "", "--appendonly", "no"]);
    const server = new RedisServer(child, port, folder);
    try {
      await awaitReady(child, child.stdout);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw new Error("redis-server could not be started; is it installed?", { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#killOnExit);
    await stop(this.#child);
    this.#clear();
  }

  #clear(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function spawnOn(cpus: string | null, program: string, args: readonly string[]): ServerProcess {
  const [command, ...prefix] = cpus === null ? [program] : [...pinnedTo(cpus), program];
  return spawn(command, [...prefix, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

/** Resolves when the server reports that it accepts connections. Its later output is read and dropped. */
async function awaitReady(child: ChildProcess, output: Readable): Promise<void> {
  const lines = createInterface({ input: output });
  const accepts = new Promise<void>((resolve) => {
    lines.on("line", (line) => {
      if (line.includes("Ready to accept connections")) resolve();
    });
  });
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([accepts, exitedEarlyError(child, signal), startTimeoutError(signal)]);
  } finally {
    settled.abort();
  }
}

async function exitedEarlyError(child: ChildProcess, signal: AbortSignal): Promise<never> {
  await once(child, "exit", { signal });
  throw new Error("redis-server ended before it accepted connections");
}

async function startTimeoutError(signal: AbortSignal): Promise<never> {
  await sleep(startWithinMs, undefined, { signal });
  throw new Error(`redis-server did not accept connections within ${startWithinMs} ms`);
}

async function stop(child: ChildProcess): Promise<void> {
  const running = child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  if (!running) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await ended;
  clearTimeout(force);
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
