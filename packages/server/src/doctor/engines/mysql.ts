import { createConnection, type Connection, type RowDataPacket } from "mysql2/promise";

import type { EngineDoctor } from "../engines.ts";
import { errorMessage, UnreachableError } from "../errors.ts";
import type { Finding } from "../finding.ts";

type Variables = ReadonlyMap<string, string>;

type Check = (variables: Variables) => Omit<Finding, "node"> | undefined;

const timeoutMs = 3_000;
const leftOpen = "sessions that have left a transaction open";
/** The options of the driver in a URL. The other parameters are for `mysql2`. */
const driverOptions = ["createSchema", "maxClockDifferenceMs", "commandTimeoutMs", "maxConnections"];

/** Checks the version, the durability and the role of a server of MySQL or MariaDB. */
export const examineMysql: EngineDoctor = async (url) => {
  const address = new URL(url);
  for (const name of driverOptions) {
    address.searchParams.delete(name);
  }
  const node = address.host;
  const maxClockDifferenceMs = Number(new URL(url).searchParams.get("maxClockDifferenceMs") ?? 0);
  let connection: Connection | undefined;
  try {
    connection = await createConnection({ uri: address.href, connectTimeout: timeoutMs });
    connection.on("error", () => undefined);
    const variables = new Map([
      ...(await namesAndValues(connection, "SHOW GLOBAL VARIABLES")),
      ...(await namesAndValues(connection, "SHOW GLOBAL STATUS")),
      [leftOpen, await countLeftOpen(connection)],
    ]);
    const findings = [
      ...checks.flatMap((check) => check(variables) ?? []),
      ...(await clocksOfGalera(connection, address, { variables, maxClockDifferenceMs })),
    ];
    return { nodes: [node], findings: findings.map((finding) => ({ ...finding, node })) };
  } catch (error) {
    throw new UnreachableError(`${node}: ${errorMessage(error)}`, { cause: error });
  } finally {
    connection?.destroy();
  }
};

/** The sessions that have left a transaction open for longer than 10 s; "unknown" without the privilege PROCESS. */
async function countLeftOpen(connection: Connection): Promise<string> {
  const sql = `SELECT COUNT(*) AS count FROM information_schema.innodb_trx t
    JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.command = 'Sleep' AND p.time > 10`;
  const counted = connection.query<RowDataPacket[]>({ sql, timeout: timeoutMs });
  return counted.then(
    ([rows]) => String(rows[0]?.["count"]),
    () => "unknown",
  );
}

/** The names in lower case, because MySQL and MariaDB differ. */
async function namesAndValues(connection: Connection, sql: string): Promise<[string, string][]> {
  const [rows] = await connection.query<RowDataPacket[]>({ sql, timeout: timeoutMs });
  return rows.map((row) => [String(row["Variable_name"]).toLowerCase(), String(row["Value"])]);
}

/** Settings that a restart keeps: MySQL stores them itself, MariaDB reads only its option file. */
function settings(
  fix: string,
  variables: Variables,
  assignments: readonly string[],
): Pick<Finding, "fix" | "command"> {
  const isMariaDb = isMariaDbVersion(variables.get("version") ?? "");
  const set = isMariaDb ? "SET GLOBAL" : "SET PERSIST";
  return {
    fix: isMariaDb
      ? `${fix}. Add the setting to the option file too, because a restart forgets SET GLOBAL`
      : fix,
    command: assignments.map((assignment) => `${set} ${assignment}`).join("; "),
  };
}

/** Compares the clocks of the nodes of a Galera cluster, which all may grant locks. */
async function clocksOfGalera(
  connection: Connection,
  address: URL,
  { variables, maxClockDifferenceMs }: { variables: Variables; maxClockDifferenceMs: number },
): Promise<Omit<Finding, "node">[]> {
  const others = (variables.get("wsrep_incoming_addresses") ?? "").split(",").filter(Boolean);
  if (others.includes("AUTO")) {
    return [
      {
        level: "info",
        id: "clocks-not-compared",
        observed: "wsrep_incoming_addresses has no addresses of the nodes",
        impact: "a difference of the clocks of the nodes may be missing in these findings",
        fix: "set wsrep_node_incoming_address on each node",
      },
    ];
  }
  const own = await clockOf(connection);
  const findings = others.map(async (other): Promise<Omit<Finding, "node">[]> => {
    const url = new URL(address);
    url.host = other;
    const client = await createConnection({ uri: url.href, connectTimeout: timeoutMs }).catch(
      () => undefined,
    );
    try {
      const there = client && (await clockOf(client));
      const apartMs = there === undefined ? 0 : Math.abs(there.offsetMs - own.offsetMs);
      const unsureMs = (there?.uncertaintyMs ?? 0) + own.uncertaintyMs;
      return apartMs - unsureMs > maxClockDifferenceMs
        ? [
            {
              level: "risk",
              id: "clock-skew",
              observed: `the clock of the node ${other} differs by ${Math.round(apartMs)} ms, maxClockDifferenceMs is ${maxClockDifferenceMs}`,
              impact: "a node whose clock is ahead grants the lock of a lease that is valid at another node",
              fix: "synchronize the clocks, and set the option maxClockDifferenceMs to their largest difference",
            },
          ]
        : [];
    } finally {
      client?.destroy();
    }
  });
  return (await Promise.all(findings)).flat();
}

/** The difference of the server's clock to the local one, of the shortest of five round trips. */
async function clockOf(connection: Connection): Promise<{ offsetMs: number; uncertaintyMs: number }> {
  let best = { offsetMs: 0, uncertaintyMs: Infinity };
  for (let trip = 0; trip < 5; trip += 1) {
    const sent = performance.now();
    const sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000 AS now";
    const [rows] = await connection.query<RowDataPacket[]>({ sql, timeout: timeoutMs });
    const uncertaintyMs = (performance.now() - sent) / 2;
    if (uncertaintyMs < best.uncertaintyMs) {
      best = { offsetMs: Number(rows[0]?.["now"]) - (sent + uncertaintyMs), uncertaintyMs };
    }
  }
  return best;
}

const checks: readonly Check[] = [
  (variables) => {
    const text = variables.get("version") ?? "";
    const [major = 0, minor = 0] = text.split(/[.-]/).map((part) => Number.parseInt(part, 10));
    const [least, name] = isMariaDbVersion(text)
      ? ([1_006, "MariaDB 10.6"] as const)
      : ([800, "MySQL 8.0.1"] as const);
    return major * 100 + minor < least
      ? {
          level: "critical",
          id: "too-old",
          observed: `expected ${name} or newer, got ${text}`,
          impact: "the statements of the driver need a newer version, so no lock can be acquired",
          fix: "upgrade the server",
        }
      : undefined;
  },
  (variables) =>
    variables.get("read_only") !== undefined && variables.get("read_only") !== "OFF"
      ? {
          level: "critical",
          id: "standby",
          observed: `expected read_only OFF, got ${variables.get("read_only")}`,
          impact: "a replica accepts no writes, so no lock can be acquired or extended",
          fix: "name the primary in the URL",
        }
      : undefined,
  (variables) => {
    const flush = variables.get("innodb_flush_log_at_trx_commit");
    const sync = variables.get("log_bin") === "ON" ? variables.get("sync_binlog") : "1";
    return flush === "1" && sync === "1"
      ? undefined
      : {
          level: "critical",
          id: "not-durable",
          observed: `expected innodb_flush_log_at_trx_commit 1 and sync_binlog 1, got ${flush} and ${sync}`,
          impact: "a crash may lose grants that are in use, and these get a second holder",
          ...settings("write every commit to disk before the reply", variables, [
            "innodb_flush_log_at_trx_commit = 1",
            "sync_binlog = 1",
          ]),
        };
  },
  (variables) => {
    const [used, most] = [variables.get("threads_connected"), variables.get("max_connections")].map(Number);
    return used !== undefined && most !== undefined && used > 0.8 * most
      ? {
          level: "risk",
          id: "connections-nearly-full",
          observed: `${used} of ${most} connections are taken`,
          impact: "a holder that has to connect anew is refused, and loses its lock",
          ...settings("find the program that opens many connections, or raise max_connections", variables, [
            `max_connections = ${2 * most}`,
          ]),
        }
      : undefined;
  },
  (variables) =>
    Number(variables.get(leftOpen)) > 0
      ? {
          level: "risk",
          id: "open-transactions",
          observed: `${variables.get(leftOpen)} sessions are idle in a transaction for more than 10 s`,
          impact:
            "the driver runs nothing on such a connection and has to replace it, and a transaction that has called `assertHeld` keeps its key",
          fix: "find the program that leaves transactions open, for example after an error between BEGIN and COMMIT",
          command:
            "SELECT trx_mysql_thread_id, trx_started, trx_query FROM information_schema.innodb_trx ORDER BY trx_started",
        }
      : undefined,
  (variables) =>
    variables.get("wsrep_on") === "ON" && variables.get("wsrep_cluster_status") !== "Primary"
      ? {
          level: "critical",
          id: "no-majority",
          observed: `expected wsrep_cluster_status Primary, got ${variables.get("wsrep_cluster_status")}`,
          impact: "the node is in a minority and refuses writes, so no lock can be acquired or extended",
          fix: "repair the network between the nodes, or name a node of the majority in the URL",
        }
      : undefined,
];

function isMariaDbVersion(version: string): boolean {
  return /mariadb/i.test(version);
}
