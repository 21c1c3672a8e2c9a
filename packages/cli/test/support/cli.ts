import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, afterEach, beforeAll } from "vitest";

import { testBundle } from "./bundle.ts";

/** The exit code of a program, and its whole output. */
export interface ExitResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A running program. */
export interface RunningProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly ended: Promise<ExitResult>;
  out(): string;
  err(): string;
  kill(signal: NodeJS.Signals): void;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The content of stdin; by default empty. */
  readonly input?: string;
  /** Keeps stdin open. */
  readonly isInteractive?: boolean;
}

/** The bundled command line, with a server and a folder of this test file. */
export class CommandLine {
  #program = "";
  #redis: RedisServer | undefined;
  #folder = "";
  /** The existing temporary folders, for `close`. */
  readonly #createdFolders: string[] = [];
  readonly #running = new Set<ChildProcess>();

  get redis(): RedisServer {
    return this.#redis as RedisServer;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.redis.port}`;
  }

  get program(): string {
    return this.#program;
  }

  /** A path in the folder. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  /** The content of a file in the folder; "" if the file does not exist. */
  read(name: string): Promise<string> {
    return readFile(this.file(name), "utf8").catch(() => "");
  }

  async open(): Promise<void> {
    this.#program = join(await testBundle(), "main.cjs");
    this.#folder = await this.#makeFolder(join(tmpdir(), "holdfast-cli-"));
    this.#redis = await startRedis();
  }

  async close(): Promise<void> {
    await this.#redis?.stop();
    for (const folder of this.#createdFolders.splice(0)) {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Ends all programs that the test started. */
  async endAll(): Promise<void> {
    for (const child of this.#running) {
      child.kill("SIGCONT");
      child.kill("SIGKILL");
    }
    await waitUntil(() => this.#running.size === 0, "the programs end");
  }

  /** `holdfast` with these arguments. */
  start(args: readonly string[], options: StartOptions = {}): RunningProcess {
    return this.spawn(process.execPath, [this.#program, ...args], options);
  }

  /** Runs `holdfast` with these arguments to its end. */
  run(args: readonly string[], options: StartOptions = {}): Promise<ExitResult> {
    return this.start(args, options).ended;
  }

  spawn(
    program: string,
    args: readonly string[],
    { env, input, isInteractive = false }: StartOptions = {},
  ): RunningProcess {
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      cwd: this.#folder,
      env: {
        ...cleanEnvironment(process.env),
        HOLDFAST_URL: this.url,
        XDG_CACHE_HOME: this.file("cache"),
        ...env,
      },
    });
    this.#running.add(child);
    const ready = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (ready.out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (ready.err += text));
    child.stdin.on("error", () => undefined);
    if (!isInteractive) child.stdin.end(input ?? "");
    const ended = new Promise<ExitResult>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => this.#running.delete(child));
      child.once("close", (code, signal) => {
        resolve({ code, signal, ...ready });
      });
    });
    return {
      pid: child.pid as number,
      child,
      ended,
      out: () => ready.out,
      err: () => ready.err,
      kill: (signal) => void child.kill(signal),
    };
  }

  async #makeFolder(prefix: string): Promise<string> {
    const folder = await mkdtemp(prefix);
    this.#createdFolders.push(folder);
    return folder;
  }
}

/** A command line for the tests of a file. */
export function commandLine(): CommandLine {
  const one = new CommandLine();
  beforeAll(() => one.open());
  afterEach(() => one.endAll());
  afterAll(() => one.close());
  return one;
}

/** The environment without colour settings of a terminal or test runner, and without an outer lock. */
function cleanEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !/^(HOLDFAST_|FORCE_COLOR$|NO_COLOR$|NODE_OPTIONS$|VITEST)/.test(name),
    ),
  );
}

/** Whether a process runs. An ended process without a reaper does not run. */
export async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
}
