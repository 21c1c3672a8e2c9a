import type { Lease } from "holdfast";

/** The members of a lease that the judge reads. */
export type WatchedLease = Pick<Lease, "key" | "fencingToken" | "remainingMs" | "signal">;
