import { LeaseLostError, LockError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkFencingToken, checkKey } from "../../option-checks.ts";
import { systemClock } from "../../runtime/clock.ts";
import {
  bytes,
  checkTransaction,
  parameterOf,
  placeholderOf,
  rowsOf,
  type MysqlTransaction,
} from "./client.ts";
import { isInTransaction } from "./errors.ts";

/**
 * Fences a transaction exactly. If the promise resolves, no later holder has got the key, and none gets it before the transaction has
 * ended. This also holds if the lease expires or is released or broken during the transaction. If the promise rejects, roll the
 * transaction back. A lease that has expired still passes until the key is granted again.
 *
 * One row of the grant stays locked until the transaction ends. The lock does not delay extensions of the lease. In a Galera cluster
 * with several writing nodes the lock does not reach other nodes.
 * @param transaction a connection of `mysql2/promise`, within a transaction
 * @throws {LeaseLostError} if the lease was released or broken, or another holder has got the key
 * @throws {LockError} `unsupported` if the connection is in no transaction, so that nothing is fenced
 * @throws {TypeError} for a pool, whose statements may use several connections
 */
export async function assertHeld(
  transaction: MysqlTransaction,
  lease: Pick<Lease, "key" | "fencingToken">,
): Promise<void> {
  const connection = checkTransaction(transaction);
  const key = checkKey(lease.key);
  const value = bytes(key);
  const sql = `SELECT 1 FROM holdfast_pins WHERE k = ${placeholderOf(value)} AND fencing = ? LOCK IN SHARE MODE`;
  const values = [parameterOf(value), checkFencingToken(lease.fencingToken).toString()];
  const rows = await rowsOf(connection, sql, values);
  if (rows.length === 0) {
    throw new LeaseLostError(lease.key, "expired", systemClock.wall());
  }
  // Only within a transaction the server refuses this. Outside of one, the row lock has ended with its statement.
  const isRefused = await connection.query("SET TRANSACTION READ WRITE").then(() => false, isInTransaction);
  if (!isRefused) {
    const message = `MySQL: assertHeld("${key}") needs an open transaction: call it after beginTransaction(), on the same connection`;
    throw new LockError(message, { code: "unsupported", key });
  }
}
