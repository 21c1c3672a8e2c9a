import { LeaseLostError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkFencingToken, checkKey, checkOptionNames } from "../../option-checks.ts";
import { systemClock } from "../../runtime/clock.ts";
import { callFunction, queryOf, type PostgresClient } from "./client.ts";
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
 */
export async function assertHeld(
  transaction: PostgresClient,
  lease: Pick<Lease, "key" | "fencingToken">,
  options: { readonly schema?: string | undefined } = {},
): Promise<void> {
  checkOptionNames(options, ["schema"]);
  const schema = checkSchema(options.schema);
  const query = queryOf("transaction", transaction);
  const request = { key: checkKey(lease.key), fencing: checkFencingToken(lease.fencingToken).toString() };
  try {
    await callFunction(query, `${quoted(schema)}.assert_held`, request);
  } catch (error) {
    throw isLeaseLost(error)
      ? new LeaseLostError(lease.key, "expired", systemClock.wall(), { cause: error })
      : error;
  }
}
