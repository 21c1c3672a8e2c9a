import type { LockState } from "../../lock-state.ts";
import { bytes, rowsOf, textOf, type MysqlClient, type MysqlValue, type Row } from "./client.ts";
import { stateOf } from "./rows.ts";
import { now } from "./tables.ts";

const shownWaiters = 100;

/** The states of locks, read without a row lock. */
export async function statesOf(client: MysqlClient, keys: readonly string[]): Promise<LockState[]> {
  if (keys.length === 0) {
    return [];
  }
  const places = keys.map(() => "?").join(", ");
  const read = async (sql: string): Promise<Map<string, Row[]>> => {
    const rows = await rowsOf(client, sql.replace("{keys}", places), keys.map(bytes));
    return byKey(rows);
  };
  const locks = await read("SELECT k, kind, capacity FROM holdfast_locks WHERE k IN ({keys})");
  const holders =
    await read(`SELECT k, info, weight, CAST(fencing AS CHAR) AS fencing, (expires_at - ${now}) / 1000 AS remainingMs, ${now} / 1000 AS now
    FROM holdfast_holders WHERE k IN ({keys}) AND broken IS NULL AND expires_at > ${now} ORDER BY expires_at`);
  const waiters = await read(`SELECT k, owner, CAST(ticket AS CHAR) AS ticket, ${now} / 1000 AS now, total
      FROM (SELECT k, owner, ticket, COUNT(*) OVER (PARTITION BY k) AS total,
      ROW_NUMBER() OVER (PARTITION BY k ORDER BY ticket) AS place
      FROM holdfast_waiters WHERE k IN ({keys}) AND deadline > ${now} AND seen_until > ${now}) w
    WHERE place <= ${shownWaiters} ORDER BY place`);
  return keys.map((key) =>
    stateOf({
      key,
      lock: locks.get(key)?.[0],
      holders: holders.get(key) ?? [],
      waiters: waiters.get(key) ?? [],
    }),
  );
}

/** The next keys with a grant in force, in the order of their bytes. */
export async function heldKeys(
  client: MysqlClient,
  prefix: string,
  after: string | undefined,
  limit: number,
): Promise<string[]> {
  const start = bytes(prefix);
  const values: MysqlValue[] = [start, start.length, start, ...(after === undefined ? [] : [bytes(after)])];
  const rows = await rowsOf(
    client,
    `SELECT DISTINCT k FROM holdfast_holders WHERE k >= ? AND LEFT(k, ?) = ? ${after === undefined ? "" : "AND k > ?"}
    AND broken IS NULL AND expires_at > ${now} ORDER BY k LIMIT ${Math.trunc(limit)}`,
    values,
  );
  return rows.map((row) => textOf(row["k"]));
}

function byKey(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = textOf(row["k"]);
    const group = groups.get(key);
    if (group) {
      group.push(row);
    } else {
      groups.set(key, [row]);
    }
  }
  return groups;
}
