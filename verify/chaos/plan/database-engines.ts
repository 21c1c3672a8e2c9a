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
        return { driver: postgres(pool), disconnect: () => void pool.end().catch(() => undefined) };
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
    return { driver: mysql(pool), disconnect: () => void pool.end().catch(() => undefined) };
  },
};

/** The driver closes the client. */
function ownClient(driver: Driver): Connected {
  return { driver, disconnect: () => undefined };
}

/** Shorter than the client's own delays, so that a run has more work between faults. */
function reconnectDelayS(failures: number): number {
  return Math.min(failures * 0.05, 0.5);
}
