import type { Socket } from "node:net";

import pg from "pg";

import type { EngineDoctor } from "../engines.ts";
import { errorMessage, UnreachableError } from "../errors.ts";
import type { Finding } from "../finding.ts";

interface Facts {
  readonly version: number;
  readonly isStandby: boolean;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly synchronousStandbys: string;
  readonly standbys: number;
  /** How much the clock of a standby is ahead at least, ms. The user must be a superuser or have the role `pg_monitor`. */
  readonly standbyAheadMs: number;
  /** The sessions that have left a transaction open for longer than 10 s, of the users whose sessions this user may see. */
  readonly leftOpen: number;
  /** `0`: no limit. */
  readonly idleInTransaction: string;
  /** Whether several clients share one connection to the server. */
  readonly isPooled: boolean;
  readonly mode: string | null;
  /** The option of the driver in the URL. */
  readonly maxClockDifferenceMs: number;
}

/** The facts that one statement shows. */
type Shown = Omit<Facts, "isPooled" | "mode" | "maxClockDifferenceMs">;

type Check = (facts: Facts) => Omit<Finding, "node"> | undefined;

const timeoutMs = 3_000;

const sql = `SELECT current_setting('server_version_num')::integer AS version, pg_is_in_recovery() AS "isStandby",
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS "fullPageWrites",
  current_setting('synchronous_commit') AS "synchronousCommit",
  current_setting('synchronous_standby_names') AS "synchronousStandbys",
  (SELECT count(*)::integer FROM pg_stat_replication) AS standbys,
  (SELECT coalesce(max(extract(epoch FROM reply_time - clock_timestamp()) * 1000), 0)::integer FROM pg_stat_replication)
    AS "standbyAheadMs",
  (SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database()
    AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '10 seconds') AS "leftOpen",
  current_setting('idle_in_transaction_session_timeout') AS "idleInTransaction"`;

/** Checks the durability and the role of a PostgreSQL server, and whether a pooler is between. */
export const examinePostgres: EngineDoctor = async (url) => {
  const address = new URL(url);
  const mode = address.searchParams.get("mode");
  const maxClockDifferenceMs = Number(address.searchParams.get("maxClockDifferenceMs") ?? 0);
  for (const name of [
    "schema",
    "createSchema",
    "listen",
    "mode",
    "maxClockDifferenceMs",
    "commandTimeoutMs",
    "maxConnections",
  ]) {
    address.searchParams.delete(name);
  }
  const node = address.host;
  const open = (): pg.Client => {
    const options = {
      connectionString: address.href,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    };
    return new pg.Client(options).on("error", () => undefined);
  };
  const [client, other] = [open(), open()];
  try {
    await client.connect();
    const { rows } = await client.query<Shown>(sql);
    await other.connect();
    const isPooled = await sharesBackends(client, other);
    const facts = { ...(rows[0] as Shown), isPooled, mode, maxClockDifferenceMs };
    const findings = checks.flatMap((check) => check(facts) ?? []);
    return { nodes: [node], findings: findings.map((finding) => ({ ...finding, node })) };
  } catch (error) {
    throw new UnreachableError(`${node}: ${errorMessage(error)}`, { cause: error });
  } finally {
    await Promise.all([end(client), end(other)]);
  }
};

/** A server that stopped does not end the connection, and an open connection would keep the process alive. */
async function end(client: pg.Client): Promise<void> {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  const timer = setTimeout(() => stream.destroy(), timeoutMs);
  await client.end().catch(() => undefined);
  clearTimeout(timer);
}

/** How often the two clients take turns. A pooler with several connections to the server may give each client its own for a few turns. */
const poolerProbes = 5;

async function sharesBackends(client: pg.Client, other: pg.Client): Promise<boolean> {
  for (let probe = 0; probe < poolerProbes; probe += 1) {
    const [before, between, after] = [
      await backendOf(client),
      await backendOf(other),
      await backendOf(client),
    ];
    if (before !== after || before === between) {
      return true;
    }
  }
  return false;
}

async function backendOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid;
}

const checks: readonly Check[] = [
  ({ isStandby }) =>
    isStandby
      ? {
          level: "critical",
          id: "standby",
          observed: "the server is a standby",
          impact: "a standby accepts no writes, so no lock can be acquired or extended",
          fix: "name the primary in the URL",
        }
      : undefined,
  ({ fsync, fullPageWrites }) =>
    fsync === "off" || fullPageWrites === "off"
      ? {
          level: "critical",
          id: "not-durable",
          observed: `fsync is ${fsync}, full_page_writes is ${fullPageWrites}`,
          impact: "a crash of the machine may lose grants that are in use, or damage the database",
          fix: "turn both on",
          command:
            "ALTER SYSTEM SET fsync = on; ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()",
        }
      : undefined,
  ({ standbys, synchronousStandbys, synchronousCommit }) =>
    standbys > 0 && (synchronousStandbys === "" || ["local", "off"].includes(synchronousCommit))
      ? {
          level: "risk",
          id: "asynchronous-standby",
          observed: `${standbys} standbys, synchronous_standby_names is "${synchronousStandbys}", synchronous_commit is ${synchronousCommit}`,
          impact: "after a failover the new primary may lack the last grants, so a lock can have two holders",
          fix: "use a synchronous standby, or fence the writes (docs/fencing.md)",
          command: "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf()",
        }
      : undefined,
  ({ standbyAheadMs, maxClockDifferenceMs }) =>
    standbyAheadMs > maxClockDifferenceMs
      ? {
          level: "risk",
          id: "standby-clock-ahead",
          observed: `the clock of a standby is at least ${standbyAheadMs} ms ahead, maxClockDifferenceMs is ${maxClockDifferenceMs}`,
          impact:
            "after its promotion each lease ends early by that time, and the lock may have a second holder",
          fix: "synchronize the clocks, and set the option maxClockDifferenceMs to their largest difference",
        }
      : undefined,
  ({ isPooled, mode }) => {
    const observed = "clients share a connection to the server, so a pooler in transaction mode is between";
    if (!isPooled) {
      return undefined;
    }
    return mode === "advisory"
      ? {
          level: "critical",
          id: "transaction-pooler",
          observed,
          impact: "a session does not stay with its client, so the driver rejects every acquire",
          fix: "name the server itself in the URL, or remove mode=advisory from the URL",
        }
      : {
          level: "perf",
          id: "transaction-pooler",
          observed,
          impact: "notifications do not arrive, so waiters poll",
          fix: "name the server itself in the URL, or add listen=false to the URL",
        };
  },
  ({ leftOpen }) =>
    leftOpen > 0
      ? {
          level: "risk",
          id: "open-transactions",
          observed: `${leftOpen} sessions are idle in a transaction for more than 10 s`,
          impact:
            "the driver runs nothing on such a connection and has to take another one, and a transaction that has called `assertHeld` keeps its key",
          fix: "find the program that leaves transactions open, for example after an error or a timeout of its client",
          command:
            "SELECT pid, application_name, state_change, query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'",
        }
      : undefined,
  ({ idleInTransaction }) =>
    idleInTransaction === "0"
      ? {
          level: "info",
          id: "idle-in-transaction",
          observed: "expected a limit of idle_in_transaction_session_timeout, got 0",
          impact:
            "a frozen client whose open transaction has called `assertHeld` keeps the key from all other clients",
          fix: "set a limit longer than your transactions, if you use `assertHeld`",
          command: "ALTER ROLE <user> SET idle_in_transaction_session_timeout = '60s'",
        }
      : undefined,
  ({ version }) =>
    version < 140_000
      ? {
          level: "info",
          id: "old-version",
          observed: `the server has version ${Math.floor(version / 10_000)}`,
          impact: "the version no longer gets security fixes",
          fix: "upgrade the server",
        }
      : undefined,
];
