import { FencingCheck, type FencingContext } from "./fencing-check.ts";
import type { Findings } from "./findings.ts";
import type { Limits } from "./limits.ts";
import { GrantRuns, type GrantRun } from "../run/grant-runs.ts";
import { grantKey, type SharedGroup, type TrackedLease, type WatchedLease } from "./leases.ts";
import { slowestClockFactor } from "./patience.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** The holders of one key, by the true time. */
export class Holdings {
  readonly leases: Set<TrackedLease> = new Set();
  /** Released leases whose grants the engine keeps, because their shortest hold has not passed. */
  readonly #kept = new Set<TrackedLease>();
  /** Writers whose downgrade is in flight. Neither lease counts for its client, but the servers still have the grant. */
  readonly downgrading: Set<TrackedLease> = new Set();
  readonly #findings: Findings;
  readonly #limits: Limits;
  readonly #dataLostAt: () => number;
  /** Every lease that was ever granted. */
  readonly #knownLeases = new WeakMap<WatchedLease, TrackedLease>();
  readonly #runs = new GrantRuns();
  readonly #fencing: FencingCheck;
  /** When each attempt was first requested. The grant of the attempt may be as old. */
  readonly #firstRequestedAt = new Map<string, number>();
  /** The grants that several leases may share. */
  readonly #sharedGrants = new Set<string>();
  /** When the last lease on each shared grant was released. */
  readonly #releasedAt = new Map<string, number>();

  constructor(findings: Findings, limits: Limits, context: FencingContext) {
    this.#findings = findings;
    this.#limits = limits;
    this.#dataLostAt = context.dataLostAt;
    this.#fencing = new FencingCheck(findings, context);
  }

  /** A caller sends a request of this attempt. */
  attemptStarted(name: string, since: number): void {
    this.#firstRequestedAt.set(name, this.#firstRequestedAt.get(name) ?? since);
  }

  /** @returns how often the grant was handed over inside its process; 0: the engine granted the lease */
  granted(request: WaitingRequest, lease: WatchedLease, sharedGroup?: SharedGroup): number {
    const { client, isShared, weight } = request;
    const { fencingToken } = lease;
    const preceding = this.#previousRun(request, lease);
    // A repeat may report an older grant. A grant that is handed over was requested by its first owner.
    const since = preceding?.since ?? this.#firstRequestedAt.get(sharedGroup?.name ?? "") ?? request.since;
    // If an operator has broken the grant before its holder receives it, the holder learns of the break later.
    const isBroken = this.#runs.isBroken(fencingToken, isShared) || preceding?.isBroken === true;
    if (!isBroken && !this.#sharedGrants.has(grantKey(sharedGroup, lease))) {
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
    const heldFrom = request.hadPause ? request.since : now;
    const { ttlMs } = request;
    this.#track({ client, lease, since: now, heldFrom, weight, ttlMs, sharedGroup, grantRun, capacity });
    return preceding ? Number(fencingToken - grantRun.first) : 0;
  }

  /** If holders share the key, only a released grant precedes, because another grant may have the next number by chance. */
  #previousRun({ client, isShared }: WaitingRequest, { fencingToken }: WatchedLease): GrantRun | undefined {
    const isHeld = (run: GrantRun): boolean =>
      [...this.leases].some((one) => one.grantRun === run && one.lease.remainingMs() > 0);
    const run = this.#runs.precedingRun(client, fencingToken, isShared);
    return run && isShared && isHeld(run) ? undefined : run;
  }

  /** A grant whose last lease was released is never shared again. */
  #checkSharedGroup(
    request: WaitingRequest,
    lease: WatchedLease,
    sharedGroup: SharedGroup | undefined,
  ): void {
    if (sharedGroup) {
      const releasedAt = this.#releasedAt.get(grantKey(sharedGroup, lease));
      this.#sharedGrants.add(grantKey(sharedGroup, lease));
      if (releasedAt !== undefined && releasedAt < request.since) {
        this.#findings.add(
          "reentry",
          `client ${request.client} was admitted to ${lease.fencingToken} again, which it had released`,
        );
      }
    }
  }

  /** The client has adopted a transferred lease, on the same grant. */
  adopted(
    client: number,
    lease: WatchedLease,
    transferredToken: bigint,
    bounds: Pick<TrackedLease, "weight" | "ttlMs">,
  ): void {
    if (lease.fencingToken !== transferredToken) {
      this.#findings.add(
        "fencing",
        `client ${client} adopted ${transferredToken} and got ${lease.fencingToken}`,
      );
    }
    this.#track({ ...this.#onSameGrant(client, lease), ...bounds });
  }

  /** A writer requests its downgrade. */
  startsDowngrade(writer: WatchedLease): void {
    const own = this.#knownLeases.get(writer);
    if (own) {
      this.leases.delete(own);
      this.downgrading.add(own);
    }
  }

  /** The downgrade has its reply. */
  endsDowngrade(writer: WatchedLease): void {
    const own = this.#knownLeases.get(writer);
    if (own) {
      this.downgrading.delete(own);
    }
  }

  /** The writer is a reader from now on, on the same grant. */
  downgraded(client: number, lease: WatchedLease, writer: WatchedLease): void {
    if (lease.fencingToken !== writer.fencingToken) {
      this.#findings.add(
        "fencing",
        `the downgrade of writer ${writer.fencingToken} returned reader ${lease.fencingToken}`,
      );
    }
    const ttlMs = this.#knownLeases.get(writer)?.ttlMs ?? 0;
    this.#track({ ...this.#onSameGrant(client, lease), weight: 1, ttlMs });
  }

  /** The caller releases the lease now. */
  released(lease: WatchedLease): void {
    const own = this.#knownLeases.get(lease);
    if (!own) {
      return;
    }
    this.leases.delete(own);
    const others = own.sharedGroup ? [...this.leases].filter((one) => isSameGrant(one, own)) : [];
    if (own.sharedGroup && others.length === 0) {
      this.#releasedAt.set(grantKey(own.sharedGroup, lease), this.#findings.now);
    }
  }

  /** The lease was released, and the engine keeps its grant until the shortest hold has passed, by the fastest clock. */
  kept(lease: WatchedLease, minHoldMs: number): void {
    const own = this.#knownLeases.get(lease);
    if (own) {
      const { key, fencingToken, signal } = lease;
      const until = own.heldFrom + minHoldMs / slowestClockFactor;
      const remainingMs = (): number => until - this.#findings.now;
      this.#kept.add({ ...own, lease: { key, fencingToken, signal, remainingMs } });
    }
  }

  /** When the last kept grant may end. */
  get keptUntil(): number {
    const { now } = this.#findings;
    return Math.max(0, ...Array.from(this.#kept, ({ lease }) => now + lease.remainingMs()));
  }

  /** The grants of the client that the engine may still keep for their TTL, if the client dies. */
  keptBy(client: number): readonly TrackedLease[] {
    return [...this.#kept].filter((one) => one.client === client);
  }

  /** Whether a caller has got a lease with this number. */
  wasGranted(fencingToken: bigint): boolean {
    return this.#runs.wasGranted(fencingToken);
  }

  /** Whether an operator has broken the grant with this number. */
  isBroken(fencingToken: bigint, isShared: boolean): boolean {
    return this.#runs.isBroken(fencingToken, isShared);
  }

  /** An operator breaks the grant with that number, which belongs to that client. */
  breaks(fencingToken: bigint, client: number, isShared: boolean): void {
    this.#runs.breaks(
      fencingToken,
      client,
      Array.from([...this.leases, ...this.#kept], ({ grantRun }) => grantRun),
      isShared,
    );
  }

  /** The grant of the lease is no older. */
  since(lease: WatchedLease): number {
    return this.#knownLeases.get(lease)?.grantRun.since ?? 0;
  }

  /** Whether a client regards itself as a holder. */
  get isHeld(): boolean {
    return this.used > 0;
  }

  /** The summed weight of all clients that regard themselves as holders. */
  get used(): number {
    return this.present.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** The leases of all clients that regard themselves as holders, and the kept grants. */
  get present(): TrackedLease[] {
    return this.#valid(() => true);
  }

  check(): void {
    if (this.leases.size + this.#kept.size < 2) {
      return;
    }
    const leases = this.#valid(({ grantRun }) => !grantRun.isBroken);
    const valid = leases
      .filter(({ grantRun }) => grantRun.since >= this.#dataLostAt())
      .sort((one, other) => (one.lease.fencingToken < other.lease.fencingToken ? -1 : 1));
    if (valid.length < leases.length) {
      this.#findings.skip("exclusion: the only server lost the grant");
    }
    let used = 0;
    for (const [index, one] of valid.entries()) {
      used += one.weight;
      if (used > one.capacity) {
        const holders = valid.slice(0, index + 1).map(describeLease);
        this.#findings.add(
          "exclusion",
          `${one.lease.key} has the holders ${holders.join(" and ")} at the same time`,
        );
        return;
      }
    }
  }

  #valid(counts: (one: TrackedLease) => boolean): TrackedLease[] {
    const valid: TrackedLease[] = [];
    for (const one of [...this.leases, ...this.#kept]) {
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
    const { now } = this.#findings;
    return { client, lease, since: now, heldFrom: now, sharedGroup: undefined, grantRun, capacity };
  }

  #track(lease: TrackedLease): void {
    this.#knownLeases.set(lease.lease, lease);
    this.leases.add(lease);
  }
}

function describeLease({ client, lease, since, weight }: TrackedLease): string {
  const weightPart = weight < 2 ** 31 ? `, weight ${weight}` : "";
  return `client ${client} since ${since.toFixed(3)} (${lease.fencingToken}${weightPart})`;
}

function isSameGrant(one: TrackedLease, other: TrackedLease): boolean {
  return (
    one.sharedGroup !== undefined &&
    one.sharedGroup.name === other.sharedGroup?.name &&
    one.lease.fencingToken === other.lease.fencingToken
  );
}
