import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import { createConnection } from "mysql2/promise";

import { killProcess } from "../child-process.ts";
import { stablePort } from "../redis-server.ts";
import { ownerOf } from "./postgres-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const program = installed("mariadbd", "/usr/sbin/mariadbd");
const initProgram = installed("mariadb-install-db", "/usr/bin/mariadb-install-db");

/** Whether the programs are installed. */
export const hasMariaDb: boolean = program !== undefined && initProgram !== undefined;

/** A private, real server with the database `holdfast`. Its user is `root`, without a password. */
export interface MariaDbServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Ends the server without a warning to it. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Kills the server, and starts it again with its data after `whileDown`. */
  restart(whileDown?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a server on a free port of 127.0.0.1.
 * @param args options of the server
 * @param variables environment variables in addition to those of this process
 * @param asNobody whether a server that root starts runs as `nobody`
 */
export function startMariaDb(
  args: readonly string[] = ["--innodb-flush-log-at-trx-commit=0"],
  variables: Readonly<Record<string, string>> = {},
  asNobody = false,
): Promise<MariaDbServer> {
  return inFolder("mariadb", async (folder) => {
    // Servers that start at the same time would use the same names in a shared folder for temporary files.
    const env = { ...process.env, TMPDIR: join(folder, "tmp") };
    const { owner, own: dataArgs } = await createData(folder, env, asNobody);
    const port = await stablePort();
    const connection = { host: "127.0.0.1", port, user: "root" };
    const own = [
      ...dataArgs,
      `--socket=${join(folder, "socket")}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      "--innodb-buffer-pool-size=64M",
    ];
    const createDatabase = async (): Promise<void> => {
      const client = await createConnection(connection);
      client.on("error", () => undefined);
      await client.query("CREATE DATABASE IF NOT EXISTS holdfast");
      await client.end();
    };
    const start = (): Promise<ServerProcess> =>
      startServer(
        [program as string, ...own, ...args.map((arg) => arg.replace("{port}", String(port)))],
        createDatabase,
        {
          env: { ...env, ...variables },
          ...owner,
        },
      );
    let server = await start();
    return {
      port,
      get pid() {
        return server.child.pid as number;
      },
      url: `mysql://root@127.0.0.1:${port}/holdfast`,
      kill: () => killProcess(server.child),
      freeze: () => void server.child.kill("SIGSTOP"),
      thaw: () => void server.child.kill("SIGCONT"),
      restart: async (whileDown) => {
        await killProcess(server.child);
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

/** Creates the data of a server. @returns the user that runs the server, if not the present one, and the first options of the server */
async function createData(
  folder: string,
  env: NodeJS.ProcessEnv & { readonly TMPDIR: string },
  asNobody: boolean,
): Promise<{ owner: Awaited<ReturnType<typeof ownerOf>>; own: string[] }> {
  await mkdir(env.TMPDIR);
  const owner = asNobody ? (await ownerOf(env.TMPDIR)) && (await ownerOf(folder)) : undefined;
  const user = process.getuid?.() === 0 && !owner ? ["--user=root"] : [];
  const own = ["--no-defaults", `--datadir=${join(folder, "data")}`, ...user];
  const init = ["--auth-root-authentication-method=normal", "--skip-test-db"];
  await promisify(execFile)(initProgram as string, [...own, ...init], { env, ...owner });
  return { owner, own };
}
