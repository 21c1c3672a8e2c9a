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
  /** Aborted when it ends before it is stopped. */
  readonly lost: AbortSignal;
}

const program = "redis-server";
const startTimeoutMs = 10_000;
const pollMs = 20;
const replyTimeoutMs = 2_000;
const stopTimeoutMs = 2_000;
const portAttempts = 3;

/** What `redis-server --version` says, or null where it is not installed. */
export async function installedVersion(): Promise<string | null> {
  try {
    return (await promisify(execFile)(program, ["--version"], { timeout: replyTimeoutMs })).stdout.trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/**
 * A server for us alone: on a free port of 127.0.0.1, with a password, so that nobody else gets in by chance and we
 * can be sure that it is ours that answers; with its files in `folder`, and nothing saved. It ends with this process.
 */
export async function startServer(folder: string, signal: AbortSignal): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), folder, signal);
    } catch (error) {
      // Between our look and its bind another program may have taken the port.
      if (signal.aborted || attempt === portAttempts) throw error;
    }
  }
}

/** The version of the server at `url`. @throws where it does not answer within seconds */
export async function serverVersion(url: string): Promise<string> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: replyTimeoutMs,
    commandTimeout: replyTimeoutMs,
    retryStrategy: () => null,
  });
  let reason: Error | undefined;
  client.on("error", (error: Error) => (reason = error)); // `connect` itself only says that the connection is closed.
  try {
    await client.connect();
    return /^redis_version:(.*)$/m.exec(await client.info("server"))?.[1]?.trim() ?? "of unknown version";
  } catch (error) {
    throw reason ?? error;
  } finally {
    // On a connection that has ended already, `disconnect` only leaves a timer that delays our own end.
    if (client.status !== "end") client.disconnect();
  }
}

async function startOn(port: number, folder: string, signal: AbortSignal): Promise<Server> {
  const password = randomBytes(16).toString("hex");
  // In a process group of its own, so that Ctrl-C does not take the server away before its clients are done.
  const server = spawn(program, ["-"], { cwd: folder, detached: true });
  const output = lastOutput(server);
  const forget = atExit(() => server.kill("SIGKILL"));
  const lost = new AbortController();
  const onExit = (): void => lost.abort(new Error(`${program} ended in the middle. It said:\n${output()}`));
  const stop = async (): Promise<void> => {
    server.off("exit", onExit);
    await stopServer(server);
    forget();
  };
  try {
    server.stdin.on("error", () => undefined); // It ended early: told by its exit.
    server.stdin.end(configuration(port, password));
    const url = `redis://:${password}@127.0.0.1:${port}`;
    const version = await awaitReady(url, server, signal);
    server.once("exit", onExit);
    return { url, port, version, lost: lost.signal, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    signal.throwIfAborted();
    throw new Error(`${program} did not start; --memory does without it. It said:\n${output()}`, {
      cause: error,
    });
  }
}

/** Read from standard input: arguments are visible to every user of the machine. */
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

/** Reads what the server says, so that it never blocks on a full pipe, and keeps the end of it. */
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
