import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { freePort } from "../redis-server.ts";
import { connects, ownerOf } from "./postgres-server.ts";
import { inFolder, installed, startServer } from "./server-process.ts";

const program = installed("pgbouncer", "/usr/sbin/pgbouncer");

export const hasPgBouncer: boolean = program !== undefined;

/** A pooler in transaction mode: each transaction of a client may get another connection to the server. */
export interface PgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a pooler in front of a server, with up to `poolSize` connections to the server. */
export function startPgBouncer({ port: serverPort }: { port: number }, poolSize = 4): Promise<PgBouncer> {
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
        "pool_mode = transaction",
        `default_pool_size = ${poolSize}`,
        "server_round_robin = 1", // so that consecutive transactions get different connections
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
