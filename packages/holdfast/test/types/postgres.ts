// `postgres()` and `assertHeld()` accept real clients with their own types. Compiled with `skipLibCheck: false`.
import type { Lease } from "holdfast";
import { assertHeld, postgres } from "holdfast/postgres";
import type { Client, Pool, PoolClient } from "pg";
import type { Sql, TransactionSql } from "postgres";

export function accepts(pool: Pool, sql: Sql, withTypes: Sql<{ bigint: bigint }>): unknown[] {
  const rows = async (text: string, params: string[]): Promise<object[]> => [{ text, params }];
  return [postgres(pool), postgres(sql, { listen: true }), postgres(withTypes), postgres(rows)];
}

export async function fences(
  transactions: readonly [Client, PoolClient, TransactionSql],
  lease: Lease,
): Promise<void> {
  for (const transaction of transactions) {
    await assertHeld(transaction, lease, { schema: "holdfast" });
  }
}

export function refuses(
  client: Client,
  pool: Pool,
  sql: Sql,
  transaction: TransactionSql,
  lease: Lease,
): unknown[] {
  return [
    // @ts-expect-error -- one connection, in which the program may open a transaction
    () => postgres(client),
    // @ts-expect-error -- the statements of a transaction
    () => postgres(transaction),
    // @ts-expect-error -- each statement may get another connection
    () => assertHeld(pool, lease),
    // @ts-expect-error -- each statement may get another connection
    () => assertHeld(sql, lease),
  ];
}
