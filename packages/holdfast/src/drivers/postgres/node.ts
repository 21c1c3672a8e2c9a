import type { NodeState } from "../../lock-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { valuesOf, type PostgresQuery } from "./client.ts";
import { postgresFailure } from "./errors.ts";
import type { Notifications } from "./notifications.ts";

const timeoutMs = 2_000;

const sql = `SELECT json_build_object('version', current_setting('server_version'), 'standby', pg_is_in_recovery(),
  'address', coalesce(host(inet_server_addr()), 'local') || ':' || coalesce(inet_server_port()::text, ''),
  'now', extract(epoch FROM pg_catalog.clock_timestamp()) * 1000,
  'uptime', extract(epoch FROM pg_catalog.clock_timestamp() - pg_postmaster_start_time()) * 1000)::pg_catalog.text`;

interface NodeRow {
  readonly version: string;
  readonly standby: boolean;
  readonly address: string;
  readonly now: number;
  readonly uptime: number;
}

/** The state of the server that the client reaches now. */
export async function nodeOf(
  query: PostgresQuery,
  clock: Clock,
  notifications: Notifications | undefined,
): Promise<NodeState> {
  const sent = clock.now();
  const unknown = {
    version: null,
    role: null,
    replication: null,
    runId: null,
    uptimeMs: null,
    clockOffsetMs: null,
  };
  const arriving = notifications?.isArriving === true ? "verified" : "unverified";
  const common = {
    ...unknown,
    node: "postgres",
    quarantine: null,
    notifications: notifications === undefined ? "unavailable" : arriving,
  } as const;
  try {
    const rows = await withTimeout(clock, timeoutMs, Promise.resolve(query(sql, [])));
    if (rows === undefined) {
      throw new Error(`no reply within ${timeoutMs} ms`);
    }
    const row = JSON.parse(valuesOf(rows[0])[0] as string) as NodeRow;
    const latencyMs = clock.now() - sent;
    return {
      ...common,
      node: row.address,
      reachable: true,
      latencyMs,
      version: row.version,
      role: row.standby ? "standby" : "primary",
      uptimeMs: row.uptime,
      clockOffsetMs: row.now + latencyMs / 2 - clock.wall(),
      error: null,
    };
  } catch (error) {
    return { ...common, reachable: false, latencyMs: null, error: postgresFailure(error).message };
  }
}
