import { ServerClocks, type ServerClock } from "@holdfast/test-kit";
import { startMariaDb, startPostgres } from "@holdfast/test-kit/engines";
import { createConnection, type Connection } from "mysql2/promise";
import pg from "pg";

import { EngineServer } from "./engine-server.ts";
import type { ServerGroup } from "./server-group.ts";

/** Grants that were broken keep their row until their TTL has passed and another request comes. */
const postgresResidue = `SELECT 'holder of ' || key AS residue FROM holdfast.holders WHERE broken IS NULL
  UNION ALL SELECT 'waiter for ' || key FROM holdfast.waiters`;
const mysqlResidue = `SELECT CONCAT('holder of ', CAST(k AS CHAR)) AS residue FROM holdfast_holders WHERE broken IS NULL
  UNION ALL SELECT CONCAT('pin of ', CAST(k AS CHAR)) FROM holdfast_pins
  UNION ALL SELECT CONCAT('waiter for ', CAST(k AS CHAR)) FROM holdfast_waiters`;

/** PostgreSQL, which writes each commit to its log before the reply. Only a crash of the machine would need `fsync`. */
export async function startPostgresServers(): Promise<ServerGroup> {
  const clocks = await ServerClocks.make(1);
  const [clock] = clocks.clocks as readonly [ServerClock];
  const server = await startPostgres(["-c", "fsync=off"], clock.env);
  const query = async (sql: string): Promise<{ residue?: string }[]> => {
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query<{ residue?: string }>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const end = (condition: string): Promise<unknown> =>
    query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND ${condition}`);
  const operator = {
    residue: async () => (await query(postgresResidue)).map(({ residue = "" }) => residue),
    endConnections: () => end("true"),
    endSubscriptions: () => end("query ILIKE 'listen %'"),
  };
  return {
    servers: [new EngineServer(server, operator, clock)],
    sentinels: [],
    stop: async () => {
      await server.stop();
      await clocks[Symbol.asyncDispose]();
    },
  };
}

/** MariaDB, which stores each commit before its reply. */
export async function startMysqlServers(): Promise<ServerGroup> {
  const clocks = await ServerClocks.make(1);
  const [clock] = clocks.clocks as readonly [ServerClock];
  const server = await startMariaDb(["--innodb-flush-log-at-trx-commit=2"], clock.env);
  const withClient = async <T>(use: (client: Connection) => Promise<T>): Promise<T> => {
    const client = await createConnection(server.url);
    client.on("error", () => undefined);
    try {
      return await use(client);
    } finally {
      client.destroy();
    }
  };
  const operator = {
    residue: () =>
      withClient(async (client) => {
        const [rows] = await client.query(mysqlResidue);
        return (rows as { residue: string }[]).map(({ residue }) => residue);
      }),
    endConnections: () =>
      withClient(async (client) => {
        const [rows] = await client.query(
          "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'root' AND ID <> CONNECTION_ID()",
        );
        for (const { ID } of rows as { ID: number }[]) {
          await client.query(`KILL ${ID}`).catch(() => undefined); // the connection has ended
        }
      }),
  };
  return {
    servers: [new EngineServer(server, operator, clock)],
    sentinels: [],
    stop: async () => {
      await server.stop();
      await clocks[Symbol.asyncDispose]();
    },
  };
}
