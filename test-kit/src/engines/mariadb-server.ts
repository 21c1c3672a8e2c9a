import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import { createConnection } from "mysql2/promise";

import { freePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const program = installed("mariadbd", "/usr/sbin/mariadbd");
const initProgram = installed("mariadb-install-db", "/usr/bin/mariadb-install-db");

export const hasMariaDb: boolean = program !== undefined && initProgram !== undefined;

/** A private, real server with the database `holdfast`. Its user is `root`, without a password. */
export interface MariaDbServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Kills the server, and starts it again with its data after `whileDown`. */
  restart(whileDown?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. @param args options of the server */
export function startMariaDb(
  args: readonly string[] = ["--innodb-flush-log-at-trx-commit=0"],
): Promise<MariaDbServer> {
  return inFolder("mariadb", async (folder) => {
    const user = process.getuid?.() === 0 ? ["--user=root"] : [];
    const data = join(folder, "data");
    // Servers that start at the same time would use the same names in a shared folder for temporary files.
    const env = { ...process.env, TMPDIR: join(folder, "tmp") };
    await mkdir(env.TMPDIR);
    const init = ["--auth-root-authentication-method=normal", "--skip-test-db", ...user];
    await promisify(execFile)(initProgram as string, ["--no-defaults", `--datadir=${data}`, ...init], {
      env,
    });
    const port = await freePort();
    const connection = { host: "127.0.0.1", port, user: "root" };
    const own = [
      "--no-defaults",
      `--datadir=${data}`,
      `--socket=${join(folder, "socket")}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      "--innodb-buffer-pool-size=64M",
      ...user,
    ];
    const createDatabase = async (): Promise<void> => {
      const client = await createConnection(connection);
      client.on("error", () => undefined);
      await client.query("CREATE DATABASE IF NOT EXISTS holdfast");
      await client.end();
    };
    const start = (): Promise<ServerProcess> =>
      startServer([program as string, ...own, ...args], createDatabase, { env });
    let server = await start();
    return {
      port,
      get pid() {
        return server.child.pid as number;
      },
      url: `mysql://root@127.0.0.1:${port}/holdfast`,
      restart: async (whileDown) => {
        const ended = once(server.child, "exit");
        server.child.kill("SIGKILL");
        await ended;
        try {
          await whileDown?.();
        } finally {
          server = await start();
        }
      },
      stop: async () => {
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}
