import { setTimeout as pause } from "node:timers/promises";

import type { Driver } from "holdfast";
import { connect } from "holdfast/connect";
import { mysql } from "holdfast/mysql";
import { postgres, type PostgresClient } from "holdfast/postgres";
import { createPool } from "mysql2/promise";
import pg from "pg";
import postgresJs from "postgres";

import { commonEngine, commonFaults } from "./common-engine.ts";
import type { Connected, Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";

/** More than a client process has callers, and for all processes fewer than the servers accept. */
const poolSize = 12;
const queryTimeoutMs = 4_000;

const common = { ...commonEngine, nodeCounts: [1], hasReadWrite: true, hasSemaphores: true } as const;

/** The server decides by its own clock. */
const databaseFaults: readonly FaultKind[] = [
  ...commonFaults,
  "restart under a held lock",
  "step the clock back",
  "clock runs unevenly",
];

export const postgresServer: Engine = {
  ...common,
  name: "postgres",
  request: /"holdfast"\./,
  message: /holdfast_[\da-z]/i,
  faults: [...databaseFaults, "end subscriptions", "half-open subscriptions", "lose all messages"],
  connect: async ({ ports: [port = 0], client }) => {
    const url = `postgres://holdfast@127.0.0.1:${port}/postgres`;
    switch (client % 3) {
      case 0:
        return ownClient(await connect(`${url}?maxConnections=${poolSize}`));
      case 1: {
        const sql = postgresJs(url, {
          max: poolSize,
          backoff: reconnectDelayS,
          // If a connection ends while the client fetches the types, the client leaves a rejection unhandled.
          fetch_types: false,
          onnotice: () => undefined,
        });
        const driver = postgres(sql as PostgresClient, { listen: true });
        return { driver, disconnect: () => void sql.end({ timeout: 1 }).catch(() => undefined) };
      }
      default: {
        const pool = new pg.Pool({
          connectionString: url,
          max: poolSize,
          query_timeout: queryTimeoutMs,
          keepAlive: true,
        });
        pool.on("error", () => undefined);
        const connected = {
          driver: postgres(pool),
          disconnect: () => void pool.end().catch(() => undefined),
        };
        return besideProgram(connected, postgresLeftovers, async (statement) => {
          const connection = await pool.connect();
          connection.on("error", ignored);
          await connection.query(statement).catch(() => undefined);
          connection.off("error", ignored);
          connection.release();
        });
      }
    }
  },
};

export const mysqlServer: Engine = {
  ...common,
  name: "mysql",
  request: /^[^]{4}\p{Cc}/u, // the code of a command follows the head of its packet
  faults: databaseFaults,
  connect: async ({ ports: [port = 0], client }) => {
    const url = `mysql://root@127.0.0.1:${port}/holdfast`;
    if (client % 2 === 0) {
      return ownClient(await connect(`${url}?maxConnections=${poolSize}`));
    }
    const pool = createPool({ uri: url, connectionLimit: poolSize });
    const connected = { driver: mysql(pool), disconnect: () => void pool.end().catch(() => undefined) };
    return besideProgram(connected, mysqlLeftovers, async (statement) => {
      const connection = await pool.getConnection();
      await connection.query(statement).catch(() => undefined);
      connection.release();
    });
  },
};

/**
 * A careless program that shares the pool. It leaves connections in transactions, also failed ones and ones with a snapshot, and rolls
 * others back.
 */
const postgresLeftovers = [
  "BEGIN",
  "BEGIN; SELECT 1 / 0",
  "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM holdfast.holders",
  "ROLLBACK",
  "ROLLBACK",
];

/** On MySQL a program can also leave another database, and another setting of `autocommit`. */
const mysqlLeftovers = [
  "START TRANSACTION WITH CONSISTENT SNAPSHOT",
  "ROLLBACK",
  "ROLLBACK",
  "USE information_schema",
  "USE holdfast",
  "SET autocommit = 0",
  "SET autocommit = 1",
];

const leaveEveryMs = 60;
const ignored = (): void => undefined;

/** Runs one of the statements again and again, each on a connection that goes back to the pool. */
function besideProgram(
  connected: Connected,
  statements: readonly string[],
  leave: (statement: string) => Promise<void>,
): Connected {
  const ended = new AbortController();
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const statement = statements[Math.floor(Math.random() * statements.length)] as string;
      await leave(statement).catch(() => undefined);
      await pause(leaveEveryMs, undefined, { ref: false });
    }
  };
  void run();
  return {
    driver: connected.driver,
    disconnect: () => {
      ended.abort();
      connected.disconnect();
    },
  };
}

/** The driver closes the client. */
function ownClient(driver: Driver): Connected {
  return { driver, disconnect: () => undefined };
}

/** Shorter than the client's own delays, so that a run has more work between faults. */
function reconnectDelayS(failures: number): number {
  return Math.min(failures * 0.05, 0.5);
}
