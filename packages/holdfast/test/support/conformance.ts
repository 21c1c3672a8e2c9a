import { limitMs } from "@holdfast/test-kit";
import { driverConformance, type Conformance } from "holdfast/testing";

/** Settings of drivers in the suite. Its cases run concurrently, so that a reply may take seconds on a busy machine. */
export const patient = { commandTimeoutMs: limitMs(10_000) };

/**
 * The cases that a client library or a topology can break on its own: each command and each shape of its reply, messages, calls with
 * several keys, pages of several servers, and the end of connections. The whole suite runs once for each driver.
 */
const casesOfClients: ReadonlySet<string> = new Set([
  "exactly one of many concurrent tries is granted",
  "a waiter gets the lock when it is released",
  "an aborted wait rejects with the signal's reason and leaves no residue",
  "processes get the lock in the order of their arrival",
  "a run of hand-overs ends, and other processes get their turn",
  "fencing tokens rise over an expiry",
  "the holder's fencing token is current until its release, expiry or break, then stale",
  "extend raises the TTL of a lease and never lowers it",
  "renewal holds a lease for many times its TTL",
  "a break notifies the holder and grants the lock to the next waiter",
  "the audit has each break that ended a grant, newest first",
  "an adopted lease is renewed by the adopting process",
  "inspect reports holder, reason, remaining time, and waiters in order",
  "list pages through the held locks of a prefix",
  "a watch of a key reports its state, then each change, until its signal aborts",
  "a watch of a prefix reports the held locks, then each change",
  "every node has a name and is reachable",
  "minHoldMs keeps the key after an early release, and then serves the waiters",
  "all: a lease has every key or none",
  "all: the lease is lost if any key is lost",
  "read-write: a waiting writer is never skipped, and readers at the head are granted together",
  "read-write: a downgrade admits readers and no writer",
  "read-write: inspect reports readers and writers",
  "semaphore: another limit rejects until the limit is changed for all",
  "semaphore: a break ends one lease and grants its permits to a waiter",
  "semaphore: inspect reports permits and limit",
  "latch: the last count opens the latch for all waiters",
  "latch: inspect and list report the remaining count and the waiters",
  "latch: a watch reports each count and the expiry",
  "close rejects waiting callers and releases held leases",
]);

/** Declares the whole conformance suite, with the time of a busy machine. */
export function wholeConformance(conformance: Conformance): void {
  driverConformance({ limitMs: limitMs(25_000), ...conformance });
}

/** Declares the cases of the conformance suite that may differ with another client library or topology of the same driver. */
export function clientConformance({ test, ...conformance }: Conformance): void {
  const missing = new Set(casesOfClients);
  wholeConformance({
    ...conformance,
    test: (name, body) => (missing.delete(name) ? test(name, body) : undefined),
  });
  if (missing.size > 0) {
    throw new Error(`The conformance suite has no case ${JSON.stringify([...missing])}`);
  }
}
