import { setTimeout as pause } from "node:timers/promises";

import { isLockError, type Lease, type Locks } from "holdfast";
import { assertHeld } from "holdfast/postgres";
import type pg from "pg";

const ttlMs = 200;
/** Longer than the TTL, like a pause of the garbage collector or of a virtual machine. */
const longPauseMs = 400;

export interface Deposit {
  readonly pool: pg.Pool;
  readonly locks: Locks;
  readonly table: string;
  /** Whether the transaction is fenced. */
  readonly isFenced: boolean;
  /** Whether the worker pauses between the read and the write. */
  readonly pauses: boolean;
}

/** Adds 1 to the balance under a lock. @returns whether the deposit was committed */
export async function deposit({ pool, locks, table, isFenced, pauses }: Deposit): Promise<boolean> {
  const lease = await locks.acquire(table, { ttlMs, renew: false, waitMs: 60_000 });
  try {
    const { rows } = await pool.query<{ balance: number }>(`SELECT balance FROM ${table}`);
    if (pauses) {
      await pause(longPauseMs);
    }
    await write(
      pool,
      isFenced ? lease : undefined,
      `UPDATE ${table} SET balance = ${(rows[0]?.balance ?? 0) + 1}`,
    );
    return true;
  } catch (error) {
    if (isLockError(error, "lease-lost")) {
      return false; // the caller may repeat the deposit
    }
    throw error;
  } finally {
    await lease.release();
  }
}

/** Runs a statement in a transaction. The lease, if given, fences the transaction. */
async function write(pool: pg.Pool, lease: Lease | undefined, sql: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    if (lease !== undefined) {
      await assertHeld(client, lease);
    }
    await client.query(sql);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}
