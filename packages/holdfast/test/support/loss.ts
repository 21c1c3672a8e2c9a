import type { Lease } from "holdfast";

/** Resolves when the lease is lost, with its remaining validity at the report. A loss before the call counts too. */
export function remainingAtLoss(lease: Lease): Promise<number> {
  return new Promise((resolve) => {
    const report = (): void => resolve(lease.remainingMs());
    if (lease.signal.aborted) {
      report();
    } else {
      lease.signal.addEventListener("abort", report);
    }
  });
}
