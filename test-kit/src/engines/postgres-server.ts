import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, rm } from "node:fs/promises";
import { promisify } from "node:util";

import pg from "pg";

import { freePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const debian = "/usr/lib/postgresql";
const folders = ["17", "16", "15", "14"].map((version) => `${debian}/${version}/bin`);
const program = installed("postgres", ...folders.map((folder) => `${folder}/postgres`));
const backupProgram = installed("pg_basebackup", ...folders.map((folder) => `${folder}/pg_basebackup`));
const initProgram = installed("initdb", ...folders.map((folder) => `${folder}/initdb`));

const closeWithinMs = 2_000;

export const hasPostgres: boolean = [program, initProgram, backupProgram].every((one) => one !== undefined);

/** A private, real server. Every user of the machine may connect as `holdfast`, without a password. */
export interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Ends the server at once, like a crash. Its data stay. */
  crash(): Promise<void>;
  /** Starts the server again after a crash. */
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

/** Starts a standby of a server, which streams its changes. */
export function startStandby(primary: PostgresServer): Promise<PostgresServer> {
  return start({ args: ["-c", "fsync=off"], env: {} }, async (folder, user) => {
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
    const port = await freePort();
    const url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    const own = ["-D", folder, "-p", String(port), "-h", "127.0.0.1", "-k", folder];
    const run = (): Promise<ServerProcess> =>
      startServer([program as string, ...own, ...args], () => connects(url), {
        ...user,
        env: { ...process.env, ...env },
      });
    let server = await run();
    const end = async (signal: "SIGTERM" | "SIGQUIT"): Promise<void> => {
      if (server.child.exitCode !== null) {
        return;
      }
      const exited = once(server.child, "exit");
      server.child.kill("SIGCONT");
      server.child.kill(signal); // SIGTERM lets clients close their connections
      const timer = setTimeout(() => server.child.kill("SIGINT"), closeWithinMs);
      await exited;
      clearTimeout(timer);
    };
    return {
      port,
      url,
      get pid() {
        return server.child.pid as number;
      },
      crash: () => end("SIGQUIT"),
      restart: async () => {
        server = await run();
      },
      stop: async () => {
        await end("SIGTERM");
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
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
