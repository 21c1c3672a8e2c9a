import { execFile, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, chown, rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

import pg from "pg";

import { hasEnded } from "../child-process.ts";
import { stablePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const debian = "/usr/lib/postgresql";
const folders = ["17", "16", "15", "14"].map((version) => `${debian}/${version}/bin`);
const program = installed("postgres", ...folders.map((folder) => `${folder}/postgres`));
const backupProgram = installed("pg_basebackup", ...folders.map((folder) => `${folder}/pg_basebackup`));
const initProgram = installed("initdb", ...folders.map((folder) => `${folder}/initdb`));

const closeWithinMs = 2_000;

/** Whether the programs are installed. */
export const hasPostgres: boolean = [program, initProgram, backupProgram].every((one) => one !== undefined);

/** A private, real server. Every user of the machine may connect as `holdfast`, without a password. */
export interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Ends the server at once, like a crash. Its data stay. */
  crash(): Promise<void>;
  /** Kills all processes of the server. On Linux only. */
  kill(): Promise<void>;
  /** Stops all processes of the server, which then sends no replies. On Linux only. */
  freeze(): void;
  thaw(): void;
  /** Starts the server again after its end. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a server on a free port of 127.0.0.1.
 * @param args options of the server, for example `-c` and `max_connections=50`
 * @param env environment variables in addition to those of this process
 */
export function startPostgres(
  args: readonly string[] = ["-c", "fsync=off"],
  env: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  return start({ args, env }, async (folder, user) => {
    const init = ["-D", folder, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await promisify(execFile)(initProgram as string, init, { ...user, cwd: folder });
  });
}

/**
 * Starts a standby of a server, which streams its changes.
 * @param env environment variables in addition to those of this process
 */
export function startStandby(
  primary: PostgresServer,
  env: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  return start({ args: ["-c", "fsync=off"], env }, async (folder, user) => {
    const source = ["-h", "127.0.0.1", "-p", String(primary.port), "-U", "holdfast"];
    const options = ["-D", folder, "-R", "-c", "fast", "--no-sync"];
    await promisify(execFile)(backupProgram as string, [...source, ...options], { ...user, cwd: folder });
  });
}

function start(
  { args, env }: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> },
  prepare: (folder: string, user: User | undefined) => Promise<void>,
): Promise<PostgresServer> {
  return inFolder("postgres", async (folder) => {
    const user = await ownerOf(folder);
    await chmod(folder, 0o700);
    await prepare(folder, user);
    const port = await stablePort();
    const url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    const own = ["-D", folder, "-p", String(port), "-h", "127.0.0.1", "-k", folder];
    const run = (): Promise<ServerProcess> =>
      startServer([program as string, ...own, ...args], () => connects(url), {
        ...user,
        env: { ...process.env, ...env },
      });
    let server = await run();
    const end = async (signal: "SIGTERM" | "SIGQUIT"): Promise<void> => {
      if (hasEnded(server.child)) {
        return;
      }
      const exited = once(server.child, "exit");
      server.child.kill("SIGCONT");
      server.child.kill(signal); // SIGTERM lets clients close their connections
      const timer = setTimeout(() => server.child.kill("SIGINT"), closeWithinMs);
      await exited;
      clearTimeout(timer);
    };
    const faults = faultsOf(() => server.child);
    return {
      port,
      url,
      get pid() {
        return server.child.pid as number;
      },
      crash: () => end("SIGQUIT"),
      ...faults,
      restart: async () => {
        server = await run();
      },
      stop: async () => {
        faults.thaw();
        await end("SIGTERM");
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}

/** The faults of all processes of a server. */
function faultsOf(child: () => ChildProcess): Pick<PostgresServer, "kill" | "freeze" | "thaw"> {
  let isFrozen = false;
  return {
    kill: async () => {
      if (!hasEnded(child())) {
        const exited = once(child(), "exit");
        const killed = signalAll(child().pid as number, "SIGKILL");
        await exited;
        // Until the last of them has ended, the shared memory is in use, and a new server refuses to start.
        while (killed.some(isRunning)) {
          await pause(10);
        }
      }
    },
    freeze: () => {
      isFrozen = true;
      signalAll(child().pid as number, "SIGSTOP");
    },
    thaw: () => {
      if (isFrozen && !hasEnded(child())) {
        signalAll(child().pid as number, "SIGCONT");
      }
      isFrozen = false;
    },
  };
}

/** Frozen processes, which would not notice the end of the server. */
const frozen = new Set<number>();
process.once("exit", () => {
  for (const pid of frozen) {
    send(pid, "SIGCONT");
  }
});

/**
 * Signals all processes of a server. The first process is stopped before, so that it starts no other one.
 * @returns the processes
 */
function signalAll(pid: number, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): number[] {
  send(pid, "SIGSTOP");
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  const all = [pid, ...children.map(Number)];
  for (const one of all) {
    if (signal === "SIGSTOP") {
      frozen.add(one);
    } else {
      frozen.delete(one);
    }
    send(one, signal);
  }
  return all;
}

/** Whether a process has not ended. One that its parent has not yet waited for has the state Z. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // the process has ended
  }
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as root. The folder then belongs to `nobody`, which has the same number on every Linux. */
export async function ownerOf(folder: string): Promise<User | undefined> {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  const nobody = 65_534;
  await chown(folder, nobody, nobody);
  return { uid: nobody, gid: nobody };
}

export async function connects(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  await client.end();
}
