import { LeaseLostError } from "holdfast";

import { Arrivals } from "./arrivals.ts";
import { ClientFaults, LossNotices, type ProcessHealth } from "./losses.ts";
import { Findings, type CheckName } from "./findings.ts";
import { KeyHistory } from "./key-history.ts";
import {
  keyLeasesOf,
  type WatchedLeases,
  attemptKey,
  type SharedGroup,
  type TrackedLease,
  type WatchedLease,
} from "./leases.ts";
import { OperatorHistory } from "./operator-history.ts";
import { afterExpiryMs, faultFreeBoundMs, pollMs, slowestClockFactor } from "./patience.ts";
import { isFaultFree, servesLeases, type Schedule, type Use } from "../plan/schedule.ts";
import { ProgressCheck } from "./progress.ts";
import { createRequest, replyDueBy, type WaitingRequest } from "./waiting-request.ts";

/** Records the events of one world by the true time, and checks the guarantees of the library after each event. */
export class History {
  readonly findings: Findings;
  /** How many leases were granted. For latches: how many calls counted down or returned from their wait. */
  grants = 0;
  /** How many calls callers made. */
  operations = 0;
  /** The TTLs of transferred leases that were not adopted. */
  readonly abandonedTtlsMs: number[] = [];
  readonly #keys = new Map<string, KeyHistory>();
  /** Checks of the servers' data. They run before the checks of leases, because a limit may change in the same event as a grant. */
  serverWatches: readonly { check(): void; clientDied?(client: number): void }[] = [];
  /** Called with each lease that a caller gets. */
  onGrant: (key: string, number: number) => void = () => undefined;
  readonly disturbances: ClientFaults = new ClientFaults();
  readonly operator: OperatorHistory;
  readonly #losses: LossNotices;
  readonly #arrivals: Arrivals;
  readonly #progress: ProgressCheck;
  readonly #schedule: Schedule;
  readonly isFaultFree: boolean;
  /** When a node last lost its grants. On a quorum only a minority of the nodes lose their grants. */
  #dataLostAt = -Infinity;
  #serial = 0;
  #hasDead = false;

  constructor(now: () => number, schedule: Schedule, healthOf: (client: number) => ProcessHealth) {
    this.findings = new Findings(now);
    this.#losses = new LossNotices(this.findings, healthOf);
    this.#arrivals = new Arrivals(this.findings, schedule);
    this.#progress = new ProgressCheck(this.findings, healthOf);
    this.operator = new OperatorHistory(this.findings, schedule, (key) => this.keyHistory(key));
    this.#schedule = schedule;
    this.isFaultFree = isFaultFree(schedule);
  }

  /** A caller starts a request now. */
  requestStarted(use: Use, usesLocalQueue: boolean): WaitingRequest {
    const { now } = this.findings;
    this.#arrivals.requestStarted(use.client);
    this.#serial += 1;
    const waits = use.kind !== "try" && use.waitMs !== 0;
    const start = { now, serial: this.#serial, waits, usesLocalQueue };
    const request = createRequest(use, start, this.#arrivals, this.keyHistory(use.key).order.waiting);
    const dueBy = replyDueBy(request, now, waits);
    for (const key of request.keys) {
      const { order, waiting, holdings } = this.keyHistory(key);
      if (waits) {
        order.add(request);
      }
      if (use.attemptId !== undefined) {
        holdings.attemptStarted(attemptKey(use.client, use.attemptId), now);
      }
      waiting.add({ request, dueBy });
      this.keyHistory(key).noteKinds(now);
    }
    return request;
  }

  /** Whether the servers have known a client for a while. */
  isRegistered(client: number): boolean {
    return this.#arrivals.isRegistered(client);
  }

  /** The request has its reply. */
  requestSettled(request: WaitingRequest): void {
    this.#arrivals.requestSettled(request.client);
    for (const { order, waiting } of request.keys.map((key) => this.keyHistory(key))) {
      if (order.waiting.has(request) && !request.wasGranted) {
        this.#waiterLeft(request);
      }
      order.remove(request);
      for (const one of waiting) {
        if (one.request === request) {
          waiting.delete(one);
        }
      }
    }
  }

  /** Only the first three waiters poll when a dead holder's TTL expires. If these three leave, the next waiter polls later. */
  #waiterLeft({ keys }: WaitingRequest): void {
    const isFirst = keys.every((key) => !this.keyHistory(key).hadWaiterLeave);
    if (this.#hasDead && isFirst) {
      keys.forEach((key) => {
        this.keyHistory(key).hadWaiterLeave = true;
        this.reserve({ key }, pollMs);
      });
    }
  }

  /** @param isAgain the caller may hold the grant already, so that its entry overtakes no request */
  granted(request: WaitingRequest, lease: WatchedLeases, sharedGroup?: SharedGroup, isAgain = false): void {
    this.#checkServers();
    this.grants += 1;
    request.wasGranted = true;
    for (const keyLease of keyLeasesOf(lease)) {
      const history = this.keyHistory(keyLease.key);
      this.onGrant(keyLease.key, Number(keyLease.fencingToken));
      const handovers = history.holdings.granted(request, keyLease, sharedGroup);
      if (!isAgain) {
        history.order.granted(request, handovers);
      }
      history.freeSince = undefined;
    }
    this.#progress.granted();
    this.check();
  }

  /** The caller releases the lease now. */
  released(lease: WatchedLeases): void {
    for (const keyLease of keyLeasesOf(lease)) {
      this.keyHistory(keyLease.key).holdings.released(keyLease);
    }
  }

  /** The lease was released before its shortest hold had passed. The engine keeps its grant until then. */
  kept(lease: WatchedLeases, minHoldMs: number): void {
    for (const keyLease of keyLeasesOf(lease)) {
      this.keyHistory(keyLease.key).holdings.kept(keyLease, minHoldMs);
    }
    this.check();
  }

  /** The client transfers the lease, or leaves it to expire. The lease reserves its keys for `forMs`. */
  handedOn(client: number, lease: WatchedLeases, forMs: number): void {
    this.reserve(lease, forMs);
    for (const { key } of keyLeasesOf(lease)) {
      this.keyHistory(key).order.leaseHandedOn(client);
    }
  }

  adopted(
    client: number,
    lease: WatchedLease,
    transferredToken: bigint,
    bounds: Pick<TrackedLease, "weight" | "ttlMs">,
  ): void {
    this.grants += 1;
    this.keyHistory(lease.key).holdings.adopted(client, lease, transferredToken, bounds);
    this.check();
  }

  startsDowngrade(writer: WatchedLease): void {
    this.keyHistory(writer.key).holdings.startsDowngrade(writer);
  }

  endsDowngrade(writer: WatchedLease): void {
    this.keyHistory(writer.key).holdings.endsDowngrade(writer);
  }

  downgraded(client: number, lease: WatchedLease, writer: WatchedLease): void {
    this.keyHistory(lease.key).holdings.downgraded(client, lease, writer);
    this.check();
  }

  /** Lets the keys stay without a holder for this time, after all earlier reservations. */
  reserve(target: { readonly key: string; readonly keys?: readonly string[] }, forMs: number): void {
    for (const history of (target.keys ?? [target.key]).map((key) => this.keyHistory(key))) {
      history.reservedUntil = Math.max(history.reservedUntil, this.findings.now) + forMs;
    }
  }

  /** How long a key may still stay without a holder, because its lease is to expire or to be adopted, ms. */
  get reservedForMs(): number {
    const { now } = this.findings;
    const ends = Array.from(this.#keys.values(), ({ reservedUntil, holdings }) =>
      Math.max(reservedUntil, holdings.keptUntil * slowestClockFactor),
    );
    return Math.max(0, ...ends.map((end) => end - now));
  }

  /** The client is dead: its requests have ended, and its grants, present and still possible, end by their TTL. */
  clientDied(client: number): void {
    this.#hasDead = true;
    this.serverWatches.forEach((watch) => watch.clientDied?.(client));
    for (const [key, history] of this.#keys) {
      const reservedMs = history.clientDied(client);
      if (this.isFaultFree) {
        this.reserve({ key }, reservedMs);
      }
    }
  }

  /** Reports a result for a lease that is wrong unless a fault explains it. */
  failUnlessFaulty(check: CheckName, text: string): void {
    if (servesLeases(this.#schedule)) {
      this.fail(check, text);
    }
  }

  /** The codes with which a server with full memory refuses a request that is not for a lease. */
  get refusalCodes(): readonly string[] {
    return this.#schedule.scenario === "full-memory" ? ["engine-unavailable", "quorum-not-reached"] : [];
  }

  /** A node loses its grants now. */
  dataLost(): void {
    this.#dataLostAt = this.findings.now;
  }

  /** A release reports a lease with remaining time as lost. Only a node that lost the grant is an excuse. */
  releaseRefused(lease: WatchedLeases, text: string): void {
    const since = Math.min(
      ...keyLeasesOf(lease).map((keyLease) => this.keyHistory(keyLease.key).holdings.since(keyLease)),
    );
    if (since > this.#dataLostAt) {
      this.fail("release", text);
    } else {
      this.findings.skip("release: a node lost the grant");
    }
  }

  /** From now on no caller may wait longer for a free lock. */
  setFreeBound(boundMs: number): void {
    this.#progress.setFreeBound(boundMs, this.#keys.values());
  }

  /** A transferred lease that was not adopted expires, like the lease of a dead process. */
  leaseAbandoned(ttlMs: number): void {
    this.abandonedTtlsMs.push(ttlMs);
    if (this.isFaultFree) {
      this.setFreeBound(faultFreeBoundMs(this.#schedule) + afterExpiryMs);
    }
  }

  /** How long a caller may wait for a free lock, and since when this bound applies. */
  get freeBound(): { readonly since: number; readonly ms: number } {
    return this.#progress.freeBound;
  }

  fail(check: CheckName, text: string): void {
    this.findings.add(check, text);
  }

  /** Runs after each event. */
  check(): void {
    this.#checkServers();
    for (const [key, history] of this.#keys) {
      const { holdings, order } = history;
      history.noteKinds(this.findings.now);
      holdings.check();
      order.check();
      for (const one of holdings.leases) {
        if (this.#losses.isReported(one)) {
          holdings.leases.delete(one);
          this.#checkLoss(one);
        }
      }
      this.#progress.checkDelays(key, history);
      if (this.#schedule.kind !== "all") {
        this.#progress.checkFreeKey(key, history);
      }
    }
    if (this.#schedule.kind === "all") {
      this.#progress.checkFreeKeys([...this.#keys.values()]);
    }
  }

  /** If each extension succeeds, a lease ends by its holder, or because its holder does not renew it. */
  #checkLoss({ client, lease }: TrackedLease): void {
    const loss: unknown = lease.signal.reason;
    if (
      loss instanceof LeaseLostError &&
      (loss.reason === "engine-unreachable" || loss.reason === "stolen")
    ) {
      this.failUnlessFaulty("loss", `client ${client} lost ${lease.fencingToken}: ${loss.reason}`);
    }
  }

  #checkServers(): void {
    this.serverWatches.forEach((watch) => {
      watch.check();
    });
  }

  /** Whether no fault has disturbed the client since then. */
  #isQuietSince(client: number, since: number): boolean {
    const { scenario } = this.#schedule;
    const hasQuiet = scenario === "storm" || scenario === "full-memory"; // the other scenarios lose messages all the time
    return this.isFaultFree || (hasQuiet && this.disturbances.isQuietSince(client, since));
  }

  keyHistory(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (!history) {
      history = new KeyHistory(this.findings, key, this.#schedule, {
        dataLostAt: () => (this.#schedule.engine === "server" ? this.#dataLostAt : -Infinity),
        isQuiet: (client, since) => this.#isQuietSince(client, since),
      });
      this.#keys.set(key, history);
    }
    return history;
  }
}
