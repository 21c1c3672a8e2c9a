import type { Lease } from "holdfast";

import type { Findings } from "./findings.ts";

/** What is watched of a lease. */
export type WatchedLease = Pick<Lease, "key" | "fencingToken" | "remainingMs" | "signal">;

/** A grant that is handed on inside its process, each time with the next number. */
interface Run {
  readonly client: number;
  readonly first: bigint;
  last: bigint;
  /** An operator ends it: that it is over may be told late. */
  isBroken: boolean;
}

/** One lease, from its grant until its caller gives it back. It counts while its client's own clocks say so. */
export interface Held {
  readonly client: number;
  readonly lease: WatchedLease;
  readonly since: number;
  /** The name of its attempt: all leases of one attempt with one number are one grant. */
  readonly attemptId: string | undefined;
  readonly run: Run;
}

/** How many numbers a grant has for those it is handed on to. */
const mostNumbers = 17n;

/** Of one key: who holds it, as somebody sees it who knows the true time. */
export class Holdings {
  readonly held: Set<Held> = new Set();
  readonly #findings: Findings;
  readonly #judgesExclusion: boolean;
  /** All leases that there were. */
  readonly #known = new WeakMap<WatchedLease, Held>();
  #newest: Run = { client: -1, first: 0n, last: 0n, isBroken: false };
  /** The grants of named attempts, and those of them that were given back. */
  readonly #named = new Set<string>();
  readonly #over = new Set<string>();
  /** The numbers that operators have named. */
  readonly #broken: bigint[] = [];

  constructor(findings: Findings, judgesExclusion: boolean) {
    this.#findings = findings;
    this.#judgesExclusion = judgesExclusion;
  }

  /** @returns whether it was handed over inside its process */
  granted(client: number, lease: WatchedLease, attemptId?: string): boolean {
    const { fencingToken } = lease;
    const { last } = this.#newest;
    const isHandedOver = client === this.#newest.client && fencingToken === last + 1n;
    const grant = `${attemptId} ${fencingToken}`;
    // Who hears of a grant when an operator has ended it already learns that behind it.
    const isBroken = this.#broken.some((number) => isOfGrant(fencingToken, number));
    if (fencingToken <= last && !this.#named.has(grant) && !isBroken) {
      this.#findings.add(
        "fencing",
        `client ${client} was granted ${lease.key} with the number ${fencingToken} after ${last}`,
      );
    }
    if (attemptId !== undefined) {
      this.#named.add(grant);
    }
    if (isHandedOver) {
      this.#newest.last = fencingToken;
    } else if (fencingToken > last) {
      this.#newest = { client, first: fencingToken, last: fencingToken, isBroken };
    }
    if (!this.#over.has(grant)) {
      this.#keep(client, lease, attemptId, isBroken); // else another repeat has ended it for all: this one was under way
    }
    return isHandedOver;
  }

  /** Taken over from another client: the same grant. */
  adopted(client: number, lease: WatchedLease, given: bigint): void {
    if (lease.fencingToken !== given) {
      this.#findings.add("fencing", `client ${client} adopted ${given} and has ${lease.fencingToken}`);
    }
    this.#keep(client, lease);
  }

  /** Its caller gives it back now, and with it all leases on the same grant. */
  released(lease: WatchedLease): void {
    const own = this.#known.get(lease);
    if (own?.attemptId !== undefined) {
      this.#over.add(`${own.attemptId} ${lease.fencingToken}`);
    }
    for (const one of own ? this.held : []) {
      if (one === own || isSameGrant(one, own as Held)) {
        this.held.delete(one);
      }
    }
  }

  /** An operator ends the grant with that number. */
  breaks(fencingToken: bigint): void {
    this.#broken.push(fencingToken);
    for (const run of [this.#newest, ...Array.from(this.held, ({ run: own }) => own)]) {
      run.isBroken ||= isOfGrant(fencingToken, run.first);
    }
  }

  /** Whether somebody thinks that he holds it. */
  get isHeld(): boolean {
    for (const { lease } of this.held) {
      if (lease.remainingMs() > 0) {
        return true;
      }
    }
    return false;
  }

  look(): void {
    if (this.held.size < 2 || !this.#judgesExclusion) {
      return;
    }
    const valid: Held[] = [];
    for (const one of this.held) {
      if (
        !one.run.isBroken &&
        one.lease.remainingMs() > 0 &&
        !valid.some((other) => isSameGrant(one, other))
      ) {
        valid.push(one);
      }
    }
    if (valid.length > 1) {
      const holders = valid.map(
        ({ client, lease, since }) => `client ${client} since ${since.toFixed(3)} (${lease.fencingToken})`,
      );
      this.#findings.add("exclusion", `${valid[0]?.lease.key} is held by ${holders.join(" and ")}`);
    }
  }

  #keep(client: number, lease: WatchedLease, attemptId?: string, isBroken = false): void {
    const { fencingToken } = lease;
    const isOfNewest = this.#newest.first <= fencingToken;
    const own = { client, first: fencingToken, last: fencingToken, isBroken };
    const run = isOfNewest ? this.#newest : own;
    const held = { client, lease, attemptId, since: this.#findings.now, run };
    this.#known.set(lease, held);
    this.held.add(held);
  }
}

function isOfGrant(number: bigint, first: bigint): boolean {
  return number >= first && number < first + mostNumbers;
}

function isSameGrant(one: Held, other: Held): boolean {
  return (
    one.attemptId !== undefined &&
    one.attemptId === other.attemptId &&
    one.lease.fencingToken === other.lease.fencingToken
  );
}
