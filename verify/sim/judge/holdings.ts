import type { Lease } from "holdfast";

import { FencingCheck } from "./fencing-check.ts";
import type { Findings } from "./findings.ts";
import type { Limits } from "./limits.ts";
import { GrantRuns, type GrantRun } from "../run/grant-runs.ts";
import { grantKey, type SharedGroup } from "./shared-group.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** What is watched of a lease. */
export type WatchedLease = Pick<Lease, "key" | "fencingToken" | "remainingMs" | "signal">;

/** One lease, from its grant until its caller gives it back. It counts while its client's own clocks say so. */
export interface TrackedLease {
  readonly client: number;
  readonly lease: WatchedLease;
  readonly since: number;
  readonly weight: number;
  readonly ttlMs: number;
  readonly sharedGroup: SharedGroup | undefined;
  readonly grantRun: GrantRun;
  /** So much room there was at the most when it was granted: those before it and it have no more. */
  readonly capacity: number;
}

/** What may be asked of an engine. */
export interface HoldingsContext {
  readonly isQuorum: boolean;
  /** When the only server forgot what it had granted until then; -Infinity: it did not. */
  readonly dataLostAt: () => number;
  readonly numbersLostAt: readonly number[];
}

/** Of one key: who holds it, as somebody sees it who knows the true time. */
export class Holdings {
  readonly leases: Set<TrackedLease> = new Set();
  /** Writers whose downgrade is under way: neither lease counts for its client, but the servers have the grant. */
  readonly downgrading: Set<TrackedLease> = new Set();
  readonly #findings: Findings;
  readonly #limits: Limits;
  readonly #dataLostAt: () => number;
  /** All leases that there were. */
  readonly #knownLeases = new WeakMap<WatchedLease, TrackedLease>();
  readonly #runs = new GrantRuns();
  readonly #fencing: FencingCheck;
  /** When an attempt was first asked for: its grant may be as old. */
  readonly #firstAsked = new Map<string, number>();
  /** The grants that several have a lease on, and those of them that were given back. */
  readonly #namedAttempts = new Set<string>();
  readonly #endedLeases = new Map<string, number>();

  constructor(findings: Findings, limits: Limits, judges: HoldingsContext) {
    this.#findings = findings;
    this.#limits = limits;
    this.#dataLostAt = judges.dataLostAt;
    this.#fencing = new FencingCheck(findings, this.#runs, judges);
  }

  /** Somebody asks by the name of an attempt. */
  attemptStarted(name: string, since: number): void {
    this.#firstAsked.set(name, this.#firstAsked.get(name) ?? since);
  }

  /** @returns how often it was handed over inside its process: 0, the engine granted it */
  granted(request: WaitingRequest, lease: WatchedLease, sharedGroup?: SharedGroup): number {
    const { client, isShared, weight } = request;
    const { fencingToken } = lease;
    const preceding = this.#previousRun(request, lease);
    // A repeat is told of an older grant, and a grant that is handed on was asked for by its first owner.
    const since = preceding?.since ?? this.#firstAsked.get(sharedGroup?.name ?? "") ?? request.since;
    // Who hears of a grant when an operator has ended it already learns that behind it.
    const isBroken = this.#runs.isBroken(fencingToken, isShared) || preceding?.isBroken === true;
    if (!isBroken && !this.#namedAttempts.has(grantKey(sharedGroup, lease))) {
      this.#fencing.check(request, lease, since, this.#maxCapacity(0));
    }
    this.#fencing.reported(fencingToken, weight);
    const grantRun = this.#runs.granted(client, fencingToken, {
      preceding,
      isShared,
      isBroken,
      since: request.since,
    });
    this.#checkSharedGroup(request, lease, sharedGroup);
    const { now } = this.#findings;
    const capacity = this.#maxCapacity(since);
    this.#track({ client, lease, since: now, weight, ttlMs: request.ttlMs, sharedGroup, grantRun, capacity });
    return preceding ? Number(fencingToken - grantRun.first) : 0;
  }

  /** Of those who share the key only a grant that its last owner gave back: another one may have the next number by chance. */
  #previousRun({ client, isShared }: WaitingRequest, { fencingToken }: WatchedLease): GrantRun | undefined {
    const isHeld = (run: GrantRun): boolean =>
      [...this.leases].some((one) => one.grantRun === run && one.lease.remainingMs() > 0);
    const run = this.#runs.precedingRun(client, fencingToken, isShared);
    return run && isShared && isHeld(run) ? undefined : run;
  }

  /** A grant that the last of its owners gave back is never shared again. */
  #checkSharedGroup(
    request: WaitingRequest,
    lease: WatchedLease,
    sharedGroup: SharedGroup | undefined,
  ): void {
    if (sharedGroup) {
      const overSince = this.#endedLeases.get(grantKey(sharedGroup, lease));
      this.#namedAttempts.add(grantKey(sharedGroup, lease));
      if (overSince !== undefined && overSince < request.since) {
        this.#findings.add(
          "reentry",
          `client ${request.client} is let into ${lease.fencingToken} again, which it gave back`,
        );
      }
    }
  }

  /** Taken over from another client: the same grant. */
  adopted(
    client: number,
    lease: WatchedLease,
    transferredToken: bigint,
    bounds: Pick<TrackedLease, "weight" | "ttlMs">,
  ): void {
    if (lease.fencingToken !== transferredToken) {
      this.#findings.add(
        "fencing",
        `client ${client} adopted ${transferredToken} and has ${lease.fencingToken}`,
      );
    }
    this.#track({ ...this.#onSameGrant(client, lease), ...bounds });
  }

  /** A writer asks to become a reader. */
  startsDowngrade(writer: WatchedLease): void {
    const own = this.#knownLeases.get(writer);
    if (own) {
      this.leases.delete(own);
      this.downgrading.add(own);
    }
  }

  /** A downgrade has an answer. */
  endsDowngrade(writer: WatchedLease): void {
    const own = this.#knownLeases.get(writer);
    if (own) {
      this.downgrading.delete(own);
    }
  }

  /** A writer is a reader from now on, on the same grant. */
  downgraded(client: number, lease: WatchedLease, writer: WatchedLease): void {
    if (lease.fencingToken !== writer.fencingToken) {
      this.#findings.add("fencing", `${writer.fencingToken} became the reader ${lease.fencingToken}`);
    }
    const ttlMs = this.#knownLeases.get(writer)?.ttlMs ?? 0;
    this.#track({ ...this.#onSameGrant(client, lease), weight: 1, ttlMs });
  }

  /** Its caller gives it back now. */
  released(lease: WatchedLease): void {
    const own = this.#knownLeases.get(lease);
    if (!own) {
      return;
    }
    this.leases.delete(own);
    const others = own.sharedGroup ? [...this.leases].filter((one) => isSameGrant(one, own)) : [];
    if (own.sharedGroup && others.length === 0) {
      this.#endedLeases.set(grantKey(own.sharedGroup, lease), this.#findings.now);
    }
  }

  /** Whether a caller has been told of a lease with this number. */
  wasGranted(fencingToken: bigint): boolean {
    return this.#runs.wasGranted(fencingToken);
  }

  /** An operator has named the number. */
  isBroken(fencingToken: bigint, isShared: boolean): boolean {
    return this.#runs.isBroken(fencingToken, isShared);
  }

  /** An operator ends the grant with that number, which is that client's. */
  breaks(fencingToken: bigint, client: number, isShared: boolean): void {
    this.#runs.breaks(
      fencingToken,
      client,
      Array.from(this.leases, ({ grantRun }) => grantRun),
      isShared,
    );
  }

  /** Its grant is no older. */
  since(lease: WatchedLease): number {
    return this.#knownLeases.get(lease)?.grantRun.since ?? 0;
  }

  /** Whether somebody thinks that he holds it. */
  get isHeld(): boolean {
    return this.used > 0;
  }

  /** How much room those take who think that they hold it. */
  get used(): number {
    return this.#valid(() => true).reduce((sum, { weight }) => sum + weight, 0);
  }

  check(): void {
    if (this.leases.size < 2) {
      return;
    }
    const leases = this.#valid(({ grantRun }) => !grantRun.isBroken);
    const valid = leases
      .filter(({ grantRun }) => grantRun.since >= this.#dataLostAt())
      .sort((one, other) => (one.lease.fencingToken < other.lease.fencingToken ? -1 : 1));
    if (valid.length < leases.length) {
      this.#findings.skip("exclusion: the only server forgot the grant");
    }
    let used = 0;
    for (const [index, one] of valid.entries()) {
      used += one.weight;
      if (used > one.capacity) {
        const holders = valid.slice(0, index + 1).map(describeLease);
        this.#findings.add("exclusion", `${one.lease.key} is held by ${holders.join(" and ")}`);
        return;
      }
    }
  }

  #valid(counts: (one: TrackedLease) => boolean): TrackedLease[] {
    const valid: TrackedLease[] = [];
    for (const one of this.leases) {
      if (counts(one) && one.lease.remainingMs() > 0 && !valid.some((other) => isSameGrant(one, other))) {
        valid.push(one);
      }
    }
    return valid;
  }

  #maxCapacity(since: number): number {
    return Math.max(...this.#limits.inForceSince(since));
  }

  #onSameGrant(client: number, lease: WatchedLease): Omit<TrackedLease, "weight" | "ttlMs"> {
    const grantRun = this.#runs.runOf(client, lease.fencingToken);
    const capacity = this.#maxCapacity(0);
    return { client, lease, since: this.#findings.now, sharedGroup: undefined, grantRun, capacity };
  }

  #track(lease: TrackedLease): void {
    this.#knownLeases.set(lease.lease, lease);
    this.leases.add(lease);
  }
}

function describeLease({ client, lease, since, weight }: TrackedLease): string {
  const sharePart = weight < 2 ** 31 ? `, ${weight}` : "";
  return `client ${client} since ${since.toFixed(3)} (${lease.fencingToken}${sharePart})`;
}

function isSameGrant(one: TrackedLease, other: TrackedLease): boolean {
  return (
    one.sharedGroup !== undefined &&
    one.sharedGroup.name === other.sharedGroup?.name &&
    one.lease.fencingToken === other.lease.fencingToken
  );
}
