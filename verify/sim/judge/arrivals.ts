import type { Findings } from "./findings.ts";
import type { Schedule } from "../plan/schedule.ts";

/** A client has no queue entry until the servers know the client and their notifications reach it, ms. */
const registrationMs = 500;
/** Without faults a client knows the time of all servers after one round trip, ms. */
const clockSyncMs = 10;

/** When a request may have arrived at the servers, and how long the request waits. */
export interface ArrivalWindow {
  /** The earliest arrival that its ticket may have: see `QueueOrder`. */
  readonly arrivedFrom: number;
  /** The latest arrival that its ticket may have. */
  readonly arrivedTo: number;
  /** When its wait ends. Then the request leaves the queue, and reads the holders of the lock before it fails. */
  readonly until: number;
}

/** Estimates when requests arrived at the servers, by the servers' clocks. */
export class Arrivals {
  readonly #findings: Findings;
  readonly #schedule: Schedule;
  readonly #unsyncedAheadMs: number;
  readonly #firstRequestAt = new Map<number, number>();
  /** When a call of each client last ended, so that the client had a reply. */
  readonly #lastReplyAt = new Map<number, number>();
  /** When a call of each client last began, among calls that began more than `clockSyncMs` apart. */
  readonly #lastRequestAt = new Map<number, number>();
  readonly #lastArrivalTo = new Map<number, number>();

  constructor(findings: Findings, schedule: Schedule) {
    this.#findings = findings;
    this.#schedule = schedule;
    const { engine, nodes } = schedule;
    this.#unsyncedAheadMs = engine === "quorum" ? unsyncedAheadMs(nodes.map(({ offsetMs }) => offsetMs)) : 0;
  }

  requestStarted(client: number): void {
    this.#firstRequestAt.set(client, this.#firstRequestAt.get(client) ?? this.#findings.now);
  }

  requestSettled(client: number): void {
    this.#lastReplyAt.set(client, this.#findings.now);
  }

  /** Whether the servers have known a client for a while. */
  isRegistered(client: number): boolean {
    return this.#knownForMs(client) > registrationMs;
  }

  /** Between which times the request may have arrived, and when the request leaves the queue. */
  windowOf(client: number, waitMs: number): ArrivalWindow {
    const { now } = this.#findings;
    const lastReplyAt = this.#lastClockSync(client);
    const drift = this.#driftOf(client);
    const driftMs = drift * (now - lastReplyAt);
    const aheadMs = this.#knownForMs(client) > clockSyncMs ? 0 : this.#unsyncedAheadMs;
    const until = now + waitMs / this.#rateOf(client); // the deadline by the client's own clock
    const arrivedTo = Math.max(now + driftMs, this.#lastArrivalTo.get(client) ?? 0); // the tickets of a client rise
    this.#lastArrivalTo.set(client, arrivedTo);
    return { arrivedFrom: now - aheadMs - driftMs, arrivedTo, until };
  }

  /** When a client last learned the servers' time, at the earliest. An earlier call has had a first reply by now. */
  #lastClockSync(client: number): number {
    const { now } = this.#findings;
    const begunAt = this.#lastRequestAt.get(client) ?? -Infinity;
    if (now - begunAt > clockSyncMs) {
      this.#lastRequestAt.set(client, now);
      this.#lastReplyAt.set(client, Math.max(this.#lastReplyAt.get(client) ?? now, begunAt));
    }
    return this.#lastReplyAt.get(client) ?? now;
  }

  /** By how much the clocks of a client and of the servers drift apart, per ms without a reply. */
  #driftOf(client: number): number {
    return (
      driftOfRate(this.#rateOf(client)) +
      Math.max(0, ...this.#schedule.nodes.map(({ rate }) => driftOfRate(rate)))
    );
  }

  #knownForMs(client: number): number {
    const { now } = this.#findings;
    return now - (this.#firstRequestAt.get(client) ?? now);
  }

  #rateOf(client: number): number {
    return this.#schedule.clients[client]?.rate ?? 1;
  }
}

function driftOfRate(rate: number): number {
  return Math.abs(rate - 1);
}

/**
 * By how much the median of a majority's clocks may be slower than the median of all clocks, ms.
 * @param offsetsMs the difference of each clock from the true time
 */
export function unsyncedAheadMs(offsetsMs: readonly number[]): number {
  const sorted = [...offsetsMs].sort((one, other) => one - other);
  return medianOf(sorted) - medianOf(sorted.slice(0, Math.floor(sorted.length / 2) + 1));
}

function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}
