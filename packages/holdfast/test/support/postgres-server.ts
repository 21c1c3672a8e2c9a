import { execFile } from "node:child_process";
import { chown, rm } from "node:fs/promises";
import { promisify } from "node:util";

import { freePort } from "@holdfast/test-kit";
import pg from "pg";

import { inFolder, installed, startServer } from "./server-process.ts";
import { describeWith } from "./servers.ts";

const debian = "/usr/lib/postgresql";
const folders = ["17", "16", "15", "14"].map((version) => `${debian}/${version}/bin`);
const program = installed("postgres", ...folders.map((folder) => `${folder}/postgres`));
const initProgram = installed("initdb", ...folders.map((folder) => `${folder}/initdb`));

/** `describe` for tests that need PostgreSQL. */
export const onPostgres: ReturnType<typeof describeWith> = describeWith(
  "PostgreSQL",
  program !== undefined && initProgram !== undefined,
);

/** A private, real server. Every user of the machine may connect as `holdfast`, without a password. */
export interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. @param args options of the server, for example `-c` and `max_connections=50` */
export function startPostgres(args: readonly string[] = ["-c", "fsync=off"]): Promise<PostgresServer> {
  return inFolder("postgres", async (folder) => {
    const user = await ownerOf(folder);
    const init = ["-D", folder, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await promisify(execFile)(initProgram as string, init, { ...user, cwd: folder });
    const port = await freePort();
    const url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    const own = ["-D", folder, "-p", String(port), "-h", "127.0.0.1", "-k", folder];
    const server = await startServer([program as string, ...own, ...args], () => connects(url), user);
    return {
      port,
      pid: server.child.pid as number,
      url,
      stop: async () => {
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}

/** PostgreSQL refuses to run as root. The folder then belongs to `nobody`, who has the same number on every Linux. */
async function ownerOf(folder: string): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  const nobody = 65_534;
  await chown(folder, nobody, nobody);
  return { uid: nobody, gid: nobody };
}

async function connects(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  await client.end();
}
