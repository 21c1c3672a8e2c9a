import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { Redis, type RedisOptions } from "ioredis";

import { endProcess, hasEnded, readOutput } from "./child-process.ts";
import { limitMs } from "./time-limits.ts";

/** A private, real server. */
export interface RedisServer {
  readonly port: number;
  /** The id of the present process. */
  readonly pid: number;
  /** The run id of the present process, which changes with each restart. */
  readonly runId: string;
  /** The folder of its files, unless `args` name another. */
  readonly folder: string;
  /** Whether the server has neither ended nor been frozen. */
  readonly isAlive: boolean;
  /** A new ioredis client; `stop` closes it. */
  client(options?: ServerClientOptions): Redis;
  /** Closes the clients, ends the server by its pid and removes its folder. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Starts the server again in the same folder, after `whileDown`. `args` are appended to the original arguments. */
  restart(args?: readonly string[], whileDown?: () => Promise<unknown>): Promise<void>;
  /** Sends SIGSTOP: the server keeps its connections and sends no replies. */
  freeze(): void;
  thaw(): void;
}

export type ServerClientOptions = Omit<RedisOptions, "protocol" | "replyMapping">;

/** The server's program. `HOLDFAST_REDIS_SERVER` can name another version of Redis, or Valkey. */
export const redisProgram: string = process.env["HOLDFAST_REDIS_SERVER"] ?? "redis-server";
const startWithinMs = limitMs(20_000);
const portAttempts = 5;

/** The servers and their folders, which must not outlive this process in any case. */
const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.once("exit", killAll);
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    killAll();
    process.kill(process.pid, signal);
  });
}

export interface ServerOptions {
  /** Default: {@link redisProgram}. */
  readonly program?: string;
  readonly args?: readonly string[];
  readonly port?: number;
  /** The configuration of a sentinel; absent: the server is no sentinel. */
  readonly sentinel?: string;
  /** Variables in addition to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a server on a free port of 127.0.0.1 (or on `port`), with its files in a folder of its own, and nothing saved. */
export async function startRedis(options: ServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-redis-"));
  folders.add(folder);
  try {
    for (let attempt = 1; ; attempt++) {
      const port = options.port ?? (await freePort());
      const child = spawnServer(port, folder, options);
      try {
        const runId = await answers(child, port);
        return server(child, runId, { port, folder, options });
      } catch (error) {
        await endProcess(child);
        // Another program may have bound the port since it was found free.
        if (options.port !== undefined || attempt === portAttempts) {
          throw error;
        }
      }
    }
  } catch (error) {
    await remove(folder);
    throw error;
  }
}

async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  folders.delete(folder);
}

/** Finds a free port. Another program may bind the port before the caller does. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

const stablePorts: { readonly from: number; readonly count: number } = { from: 18_000, count: 14_000 };
/**
 * Each process searches its own range of ports, so that processes that start servers at the same time do not compete for a port.
 */
const portRanges = 14;
const portRangeSize = stablePorts.count / portRanges;
const usedPorts = new Set<number>();

/**
 * Finds a free port below the range of outgoing connections. No connection uses the port while its server is down. A client then
 * gets a refusal, and never connects to itself by chance. No port is returned again before the range is used up.
 */
export async function stablePort(): Promise<number> {
  const from = stablePorts.from + (process.pid % portRanges) * portRangeSize;
  for (let attempt = 0; attempt < portRangeSize; attempt += 1) {
    if (usedPorts.size === portRangeSize) {
      usedPorts.clear();
    }
    const candidate = from + Math.floor(Math.random() * portRangeSize);
    if (!usedPorts.has(candidate)) {
      usedPorts.add(candidate);
      const port = await listenOnce(candidate).catch(() => undefined);
      if (port !== undefined) {
        return port;
      }
    }
  }
  throw new Error(`no port was free from ${from} on`);
}

async function listenOnce(candidate: number): Promise<number> {
  const probe = createServer().listen(candidate, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

function killAll(): void {
  for (const child of running) {
    child.kill("SIGKILL");
  }
  for (const folder of folders) {
    rmSync(folder, { recursive: true, force: true });
  }
}

function spawnServer(port: number, folder: string, options: ServerOptions): ChildProcess {
  const { program = redisProgram, args = [], env, sentinel } = options;
  const own = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
    "--save",
    "",
    "--appendonly",
    "no",
  ];
  const role = sentinel === undefined ? [] : [writeConfig(folder, sentinel), "--sentinel"];
  const child = spawn(program, [...role, ...own, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** The configuration is a file, because a sentinel writes its findings into the file. */
function writeConfig(folder: string, config: string): string {
  const path = join(folder, "sentinel.conf");
  writeFileSync(path, `${config}\n`);
  return path;
}

interface Start {
  readonly port: number;
  readonly folder: string;
  readonly options: ServerOptions;
}

function server(first: ChildProcess, firstRunId: string, { port, folder, options }: Start): RedisServer {
  const clients = new Set<Redis>();
  let child = first;
  let runId = firstRunId;
  let isFrozen = false;
  let isEnded = false;
  const kill = (signal: NodeJS.Signals): void => {
    isEnded ||= signal === "SIGKILL" || signal === "SIGTERM";
    child.kill(signal);
  };
  return {
    port,
    folder,
    get pid() {
      return child.pid as number;
    },
    get runId() {
      return runId;
    },
    get isAlive() {
      return !isFrozen && !isEnded && !hasEnded(child);
    },
    client: (options = {}) => {
      const client = new Redis({ host: "127.0.0.1", port, ...options });
      client.on("error", () => undefined);
      clients.add(client);
      return client;
    },
    stop: async () => {
      for (const client of clients) {
        client.disconnect();
      }
      await endProcess(child);
      await remove(folder);
    },
    kill,
    restart: async (args = [], whileDown) => {
      await endProcess(child);
      await whileDown?.();
      [isFrozen, isEnded] = [false, false];
      child = spawnServer(port, folder, { ...options, args: [...(options.args ?? []), ...args] });
      runId = await answers(child, port);
    },
    freeze: () => {
      isFrozen = true;
      kill("SIGSTOP");
    },
    thaw: () => {
      isFrozen = false;
      kill("SIGCONT");
    },
  };
}

/** Resolves when this server, and no other, replies on the port. @returns the run id */
async function answers(child: ChildProcess, port: number): Promise<string> {
  const output = readOutput(child);
  const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
  client.on("error", () => undefined);
  const deadline = performance.now() + startWithinMs;
  try {
    for (;;) {
      const info = await client.connect().then(
        () => client.info("server"),
        () => "",
      );
      if (info.includes(`process_id:${child.pid}\r`)) {
        return /run_id:(\w+)/.exec(info)?.[1] ?? "";
      }
      client.disconnect();
      if (hasEnded(child) || performance.now() > deadline) {
        throw new Error(`${redisProgram} did not start on port ${port}. Its output:\n${output()}`);
      }
      await pause(10);
    }
  } finally {
    client.disconnect();
  }
}
