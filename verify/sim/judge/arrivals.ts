import type { Findings } from "./findings.ts";
import type { Schedule } from "../plan/schedule.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** Until a client is known to the servers and their messages reach it, it has no place in a queue, ms. */
const registrationMs = 500;
/** Where nothing goes wrong all servers have told it their time by then, ms: a way there and back. */
const clockSyncMs = 10;

/** When requests may have arrived at the servers, by the servers' clocks. */
export class Arrivals {
  readonly #findings: Findings;
  readonly #schedule: Schedule;
  readonly #unsyncedAheadMs: number;
  readonly #firstRequestAt = new Map<number, number>();
  /** When a call of each client last ended: then it had an answer. */
  readonly #lastReplyAt = new Map<number, number>();
  /** When a call of each client last began, of those that began `introductionMs` apart. */
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

  windowOf(client: number, waitMs: number): Pick<WaitingRequest, "arrivedFrom" | "arrivedTo" | "until"> {
    const { now } = this.#findings;
    const lastReplyAt = this.#lastClockSync(client);
    const drift = this.#driftOf(client);
    const driftMs = drift * (now - lastReplyAt);
    const aheadMs = this.#knownForMs(client) > clockSyncMs ? 0 : this.#unsyncedAheadMs;
    const until = now + waitMs / this.#rateOf(client); // its time is over by its own clock
    const arrivedTo = Math.max(now + driftMs, this.#lastArrivalTo.get(client) ?? 0); // its places rise
    this.#lastArrivalTo.set(client, arrivedTo);
    return { arrivedFrom: now - aheadMs - driftMs, arrivedTo, until };
  }

  /** When a client last learned the servers' time, at the earliest. A call that began a while ago has had a first answer. */
  #lastClockSync(client: number): number {
    const { now } = this.#findings;
    const begunAt = this.#lastRequestAt.get(client) ?? -Infinity;
    if (now - begunAt > clockSyncMs) {
      this.#lastRequestAt.set(client, now);
      this.#lastReplyAt.set(client, Math.max(this.#lastReplyAt.get(client) ?? now, begunAt));
    }
    return this.#lastReplyAt.get(client) ?? now;
  }

  /** How far a client's clock and those of the servers part, of each ms without an answer. */
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

/** By how much the median of a majority's clocks may be behind that of all, ms. @param offsetsMs of each from the true time */
export function unsyncedAheadMs(offsetsMs: readonly number[]): number {
  const sorted = [...offsetsMs].sort((one, other) => one - other);
  return medianOf(sorted) - medianOf(sorted.slice(0, Math.floor(sorted.length / 2) + 1));
}

function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}
