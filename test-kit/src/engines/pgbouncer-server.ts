import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { freePort } from "../redis-server.ts";
import { connects, ownerOf } from "./postgres-server.ts";
import { inFolder, installed, startServer } from "./server-process.ts";

const program = installed("pgbouncer", "/usr/sbin/pgbouncer");

export const hasPgBouncer: boolean = program !== undefined;

/** A pooler. In transaction mode each transaction of a client may get another connection to the server. */
export interface PgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

export interface PgBouncerOptions {
  readonly mode?: "transaction" | "session";
  /** The largest number of connections to the server. */
  readonly poolSize?: number;
  /** Whether consecutive transactions get different connections. Otherwise they get the one that was used last. */
  readonly roundRobin?: boolean;
}

/** Starts a pooler in front of a server. */
export function startPgBouncer(
  { port: serverPort }: { port: number },
  { mode = "transaction", poolSize = 4, roundRobin = true }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  return inFolder("pgbouncer", async (folder) => {
    const port = await freePort();
    const file = join(folder, "pgbouncer.ini");
    const user = await ownerOf(folder);
    await writeFile(
      file,
      [
        "[databases]",
        `postgres = host=127.0.0.1 port=${serverPort} user=holdfast dbname=postgres`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        `unix_socket_dir = ${folder}`,
        "auth_type = any",
        `pool_mode = ${mode}`,
        `default_pool_size = ${poolSize}`,
        `server_round_robin = ${Number(roundRobin)}`,
        "max_client_conn = 200",
      ].join("\n"),
    );
    const url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    const server = await startServer([program as string, file], () => connects(url), user);
    return {
      url,
      stop: async () => {
        server.child.kill("SIGINT");
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}
