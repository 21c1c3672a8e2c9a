import { LeaseLostError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { checkFencingToken, checkKey } from "../../option-checks.ts";
import { systemClock } from "../../runtime/clock.ts";
import { bytes, checkClient, rowsOf, type MysqlClient } from "./client.ts";

/**
 * Fences a transaction exactly. If the promise resolves, no later holder has got the key, and none gets it before the transaction has
 * ended. This also holds if the lease expires or is released or broken during the transaction. If the promise rejects, roll the
 * transaction back. A lease that has expired still passes until the key is granted again.
 *
 * One row of the grant stays locked until the transaction ends. The lock does not delay extensions of the lease. In a Galera cluster
 * with several writing nodes the lock does not reach other nodes.
 * @param transaction a connection of `mysql2/promise`, within a transaction
 * @throws {LeaseLostError} if the lease was released or broken, or another holder has got the key
 */
export async function assertHeld(
  transaction: MysqlClient,
  lease: Pick<Lease, "key" | "fencingToken">,
): Promise<void> {
  const client = checkClient("transaction", transaction);
  const sql = "SELECT 1 FROM holdfast_pins WHERE k = ? AND fencing = ? LOCK IN SHARE MODE";
  const values = [bytes(checkKey(lease.key)), checkFencingToken(lease.fencingToken).toString()];
  const rows = await rowsOf(client, sql, values);
  if (rows.length === 0) {
    throw new LeaseLostError(lease.key, "expired", systemClock.wall());
  }
}
