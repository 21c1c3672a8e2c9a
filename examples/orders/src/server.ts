import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { Redis } from "ioredis";

import { atExit } from "./at-exit.ts";

export interface Server extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly version: string;
  /** Aborted if the server ends before it is stopped. */
  readonly lost: AbortSignal;
}

const program = "redis-server";
const startTimeoutMs = 10_000;
const pollMs = 20;
const replyTimeoutMs = 2_000;
const stopTimeoutMs = 2_000;
const portAttempts = 3;

/** The output of `redis-server --version`, or null if it is not installed. */
export async function installedVersion(): Promise<string | null> {
  try {
    return (await promisify(execFile)(program, ["--version"], { timeout: replyTimeoutMs })).stdout.trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Starts a private server on a free port of 127.0.0.1, without persistence, with its files in `folder`. The password keeps out
 * other clients, and a successful login proves that the right server replies. The server ends with this process.
 */
export async function startServer(folder: string, signal: AbortSignal): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), folder, signal);
    } catch (error) {
      // Another program may have bound the port since it was found free.
      if (signal.aborted || attempt === portAttempts) throw error;
    }
  }
}

/**
 * The version of the server at `url`.
 * @throws {Error} if the server does not reply within seconds
 */
export async function serverVersion(url: string): Promise<string> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: replyTimeoutMs,
    commandTimeout: replyTimeoutMs,
    retryStrategy: () => null,
  });
  let reason: Error | undefined;
  client.on("error", (error: Error) => (reason = error)); // the error of `connect` only states that the connection is closed
  try {
    await client.connect();
    return /^redis_version:(.*)$/m.exec(await client.info("server"))?.[1]?.trim() ?? "of unknown version";
  } catch (error) {
    throw reason ?? error;
  } finally {
    // On a connection that has ended, `disconnect` only starts a timer, which delays the end of this process.
    if (client.status !== "end") client.disconnect();
  }
}

async function startOn(port: number, folder: string, signal: AbortSignal): Promise<Server> {
  const password = randomBytes(16).toString("hex");
  // The server has its own process group, so that Ctrl-C does not end the server before its clients.
  const server = spawn(program, ["-"], { cwd: folder, detached: true });
  const output = lastOutput(server);
  const cancelAtExit = atExit(() => server.kill("SIGKILL"));
  const lost = new AbortController();
  const onExit = (): void =>
    lost.abort(new Error(`${program} ended during the run. Its output:\n${output()}`));
  const stop = async (): Promise<void> => {
    server.off("exit", onExit);
    await stopServer(server);
    cancelAtExit();
  };
  try {
    server.stdin.on("error", () => undefined); // an early end is reported by the event `exit`
    server.stdin.end(configuration(port, password));
    const url = `redis://:${password}@127.0.0.1:${port}`;
    const version = await awaitReady(url, server, signal);
    server.once("exit", onExit);
    return { url, port, version, lost: lost.signal, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    signal.throwIfAborted();
    throw new Error(
      `${program} did not start; use --memory to run without a server. Its output:\n${output()}`,
      {
        cause: error,
      },
    );
  }
}

/** The server reads its configuration from standard input, because arguments are visible to every user of the machine. */
function configuration(port: number, password: string): string {
  return ["bind 127.0.0.1", `port ${port}`, `requirepass ${password}`, 'save ""', "appendonly no", ""].join(
    "\n",
  );
}

async function awaitReady(url: string, server: ChildProcess, signal: AbortSignal): Promise<string> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    try {
      return await serverVersion(url);
    } catch (error) {
      if (hasEnded(server) || performance.now() > deadline) throw error;
    }
    await sleep(pollMs, undefined, { signal });
  }
}

async function stopServer(server: ChildProcess): Promise<void> {
  if (hasEnded(server)) return;
  const exited = once(server, "exit");
  const timeout = setTimeout(() => server.kill("SIGKILL"), stopTimeoutMs);
  server.kill("SIGTERM");
  await exited;
  clearTimeout(timeout);
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

/** Reads the server's output, so that the server never blocks on a full pipe. @returns the last part of the output */
function lastOutput(server: ChildProcess): () => string {
  let text = "";
  for (const stream of [server.stdout, server.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => (text = (text + chunk).slice(-2_000)));
  }
  server.on("error", (error) => (text += error.message));
  return () => text.trim();
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
