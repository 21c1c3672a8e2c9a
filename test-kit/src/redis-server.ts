import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { Redis, type RedisOptions } from "ioredis";

/** A real server that is ours alone. */
export interface RedisServer {
  readonly port: number;
  /** Of its present process. */
  readonly pid: number;
  /** Of its present process: another one after each restart. */
  readonly runId: string;
  /** It neither ended nor is it frozen. */
  readonly isAlive: boolean;
  /** A new ioredis client; `stop` closes it. */
  client(options?: ServerClientOptions): Redis;
  /** Closes the clients, ends the server by its pid and removes its folder. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** After its end: the same again, in the same folder, with these arguments behind the others. */
  restart(args?: readonly string[]): Promise<void>;
  /** SIGSTOP: it keeps its connections and answers nothing. */
  freeze(): void;
  thaw(): void;
}

export type ServerClientOptions = Omit<RedisOptions, "protocol" | "replyMapping">;

/** The server's program: another version of Redis, or Valkey, where `HOLDFAST_REDIS_SERVER` names one. */
export const redisProgram: string = process.env["HOLDFAST_REDIS_SERVER"] ?? "redis-server";
const startWithinMs = 20_000;
const stopWithinMs = 3_000;
const portAttempts = 5;

/** The servers, and the folders of servers, that must not outlive this process, however it ends. */
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
  readonly args?: readonly string[];
  readonly port?: number;
  /** Its configuration as a sentinel: then it is one. */
  readonly sentinel?: string;
  /** Beside our own environment. */
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
        await end(child);
        // Between our look and its bind another program may have taken the port.
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

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

const stablePorts: { readonly from: number; readonly count: number } = { from: 18_000, count: 14_000 };
/** Processes that start servers at the same time look for ports in parts of their own: between look and bind nobody else takes one. */
const portRanges = 14;
const portRangeSize = stablePorts.count / portRanges;
const usedPorts = new Set<number>();

/**
 * A free port below those that the system gives to outgoing connections: nobody takes it while its server is down, and who
 * connects to it meanwhile is refused, and not by chance connected with itself. None is given out twice before all are.
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
  const { args = [], env, sentinel } = options;
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
  const child = spawn(redisProgram, [...role, ...own, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Sentinels write what they find out into their file. */
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
      await end(child);
      await remove(folder);
    },
    kill,
    restart: async (args = []) => {
      await end(child);
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

/** Resolves when it is this server, and no other, that answers on the port. @returns its run id */
async function answers(child: ChildProcess, port: number): Promise<string> {
  const output = readOutput(child);
  const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
  client.on("error", () => undefined);
  const giveUpAt = performance.now() + startWithinMs;
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
      if (hasEnded(child) || performance.now() > giveUpAt) {
        throw new Error(`${redisProgram} did not start on port ${port}. It said:\n${output()}`);
      }
      await pause(10);
    }
  } finally {
    client.disconnect();
  }
}

/** Reads what it says, so that it never blocks on a full pipe, and keeps the end of it. */
function readOutput(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-2_000);
    });
  }
  child.on("error", (error) => {
    text += error.message;
  });
  return () => text;
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) {
    return;
  }
  const exited = once(child, "exit");
  const timeout = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  child.kill("SIGCONT");
  child.kill("SIGTERM");
  await exited;
  clearTimeout(timeout);
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}
