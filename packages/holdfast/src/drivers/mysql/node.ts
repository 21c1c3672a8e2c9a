import type { NodeState } from "../../lock-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { textOf, type Database } from "./client.ts";
import { mysqlFailure } from "./errors.ts";
import { now } from "./tables.ts";

const timeoutMs = 2_000;

const sql = `SELECT VERSION() AS version, @@global.read_only AS standby, CONCAT(@@hostname, ':', @@port) AS address, ${now} / 1000 AS now`;

/** The state of the server that the client reaches now. */
export async function nodeOf(database: Database, clock: Clock): Promise<NodeState> {
  const sent = clock.now();
  const common = {
    version: null,
    role: null,
    replication: null,
    runId: null,
    uptimeMs: null,
    clockOffsetMs: null,
    node: "mysql",
    quarantine: null,
    notifications: "unavailable",
  } as const;
  try {
    const rows = await withTimeout(clock, timeoutMs, database.rows(sql, []));
    if (rows === undefined) {
      throw new Error(`no reply within ${timeoutMs} ms`);
    }
    const [row] = rows;
    const latencyMs = clock.now() - sent;
    return {
      ...common,
      node: textOf(row?.["address"]),
      reachable: true,
      latencyMs,
      version: textOf(row?.["version"]),
      role: Number(row?.["standby"]) === 0 ? "primary" : "standby",
      clockOffsetMs: Number(row?.["now"]) + latencyMs / 2 - clock.wall(),
      error: null,
    };
  } catch (error) {
    return { ...common, reachable: false, latencyMs: null, error: mysqlFailure(error).message };
  }
}
