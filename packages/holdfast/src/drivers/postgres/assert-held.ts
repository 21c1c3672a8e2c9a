import { LeaseLostError, LockError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkFencingToken, checkKey, checkOptionNames } from "../../option-checks.ts";
import { systemClock } from "../../runtime/clock.ts";
import { argumentOf, transactionOf, valuesOf, type PostgresTransaction } from "./client.ts";
import { isLeaseLost } from "./errors.ts";
import { checkSchema, quoted } from "./options.ts";

/**
 * Fences a transaction exactly. If the promise resolves, the lease holds its key, and no other holder gets the key before the
 * transaction has ended. This also holds if the lease expires or is released or broken during the transaction. If the promise rejects,
 * the transaction is aborted, and can only be rolled back.
 *
 * The row of the grant stays locked until the transaction ends. The lock does not delay extensions of the lease. With the isolation
 * levels `REPEATABLE READ` and `SERIALIZABLE` an extension since the start of the transaction causes a serialization failure (40001).
 * @param transaction runs statements within the caller's transaction: a client of `pg`, a transaction of `postgres`, or a function
 * @throws {LeaseLostError} if the lease does not hold its key
 * @throws {LockError} `unsupported` if the statements did not run in one transaction, so that nothing is fenced
 * @throws {TypeError} for a pool, whose statements may use several connections
 */
export async function assertHeld(
  transaction: PostgresTransaction,
  lease: Pick<Lease, "key" | "fencingToken">,
  options: { readonly schema?: string | undefined } = {},
): Promise<void> {
  checkOptionNames(options, ["schema"]);
  const schema = checkSchema(options.schema);
  const query = transactionOf(transaction);
  const key = checkKey(lease.key);
  const fencing = checkFencingToken(lease.fencingToken).toString();
  const [argument, request] = argumentOf({ key, fencing });
  const sql = `SELECT ${quoted(schema)}.assert_held(${argument}), pg_catalog.txid_current()::pg_catalog.text`;
  const [asserted] = await Promise.resolve(query(sql, [request])).catch((error: unknown) => {
    throw isLeaseLost(error)
      ? new LeaseLostError(lease.key, "expired", systemClock.wall(), { cause: error })
      : error;
  });
  // Without a transaction the row lock has ended with its statement, and the second statement has another transaction ID or none.
  const [, id] = valuesOf(asserted);
  const [present] = await query(
    "SELECT (pg_catalog.txid_current_if_assigned()::pg_catalog.text = $1)::pg_catalog.text",
    [String(id)],
  );
  if (valuesOf(present)[0] !== "true") {
    const message = `PostgreSQL: assertHeld("${key}") needs an open transaction: call it after BEGIN, on the connection of the BEGIN`;
    throw new LockError(message, { code: "unsupported", key });
  }
}
