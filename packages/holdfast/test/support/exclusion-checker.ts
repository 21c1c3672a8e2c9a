import type { Lease } from "holdfast";

/**
 * Who held what, by the leases' own clocks: no lease is granted while another is valid and not given back, and each has a larger
 * number than all before it. For holders in this process; others write a `Recording`.
 */
export class ExclusionChecker {
  readonly #holders = new Map<string, Set<Lease>>();
  readonly #newest = new Map<string, bigint>();
  readonly faults: string[] = [];
  grants = 0;

  /** To be called in the turn of the grant. */
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

  /** What it held does not matter from before its release is sent. */
  async release(lease: Lease): Promise<boolean> {
    this.#holders.get(lease.key)?.delete(lease);
    return lease.release();
  }
}
