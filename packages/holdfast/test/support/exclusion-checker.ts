import type { Lease } from "holdfast";

/**
 * Checks the holders of this process by the clocks of their leases. No lease is granted while another is valid and unreleased.
 * Each fencing token is larger than all earlier ones of its key. Other processes write a `Recording`.
 */
export class ExclusionChecker {
  readonly #holders = new Map<string, Set<Lease>>();
  readonly #newest = new Map<string, bigint>();
  readonly faults: string[] = [];
  grants = 0;

  /** Call it in the same turn of the event loop as the grant. */
  granted(lease: Lease): Lease {
    const { key, fencingToken } = lease;
    this.grants += 1;
    const others = this.#holders.get(key) ?? new Set();
    for (const other of others) {
      if (other.remainingMs() > 0) {
        this.faults.push(
          `${key}: ${fencingToken} while ${other.fencingToken} has ${other.remainingMs()} ms left`,
        );
      }
    }
    const newest = this.#newest.get(key) ?? 0n;
    if (fencingToken <= newest) {
      this.faults.push(`${key}: ${fencingToken} after ${newest}`);
    } else {
      this.#newest.set(key, fencingToken);
    }
    this.#holders.set(key, others.add(lease));
    return lease;
  }

  /** Stops checking the lease before its release is sent. */
  async release(lease: Lease): Promise<boolean> {
    this.#holders.get(lease.key)?.delete(lease);
    return lease.release();
  }
}
