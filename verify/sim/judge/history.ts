import { Arrivals } from "./arrivals.ts";
import { ClientFaults } from "./disturbances.ts";
import { Findings, type CheckName } from "./findings.ts";
import type { TrackedLease, WatchedLease } from "./holdings.ts";
import { KeyHistory } from "./key-history.ts";
import { LossNotices, type ProcessHealth } from "./losses.ts";
import { keyLeasesOf, type WatchedLeases } from "./multi-lock.ts";
import { OperatorHistory } from "./operator-history.ts";
import { afterExpiryMs, faultFreeBoundMs, pollMs } from "./patience.ts";
import { isFaultFree, type Schedule, type Use } from "../plan/schedule.ts";
import { ProgressCheck } from "./progress.ts";
import { attemptKey, type SharedGroup } from "./shared-group.ts";
import { createRequest, replyDueBy, type WaitingRequest } from "./waiting-request.ts";

/** Watches the leases of one world, as somebody who knows the true time, and finds what must never happen. */
export class History {
  readonly findings: Findings;
  /** How many leases there were; of latches, how many counted or were let go. */
  grants = 0;
  /** Calls of callers. */
  operations = 0;
  /** The TTLs of given leases that were not adopted. */
  readonly abandonedTtlsMs: number[] = [];
  readonly #keys = new Map<string, KeyHistory>();
  /** What is looked at on servers, before leases are: a grant may be told in the same moment as a limit was changed. */
  serverWatches: readonly { check(): void; clientDied?(client: number): void }[] = [];
  /** Hears of each lease as a caller is told of it. */
  onGrant: (key: string, number: number) => void = () => undefined;
  readonly disturbances: ClientFaults = new ClientFaults();
  readonly operator: OperatorHistory;
  readonly #losses: LossNotices;
  readonly #arrivals: Arrivals;
  readonly #progress: ProgressCheck;
  readonly #schedule: Schedule;
  readonly #isFaultFree: boolean;
  /** When a node last forgot what it had granted; on a quorum that is one of a minority. */
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
    this.#isFaultFree = isFaultFree(schedule);
  }

  /** A caller asks from now on. */
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
    }
    return request;
  }

  /** Whether the servers have known a client for a while. */
  isRegistered(client: number): boolean {
    return this.#arrivals.isRegistered(client);
  }

  /** It has its answer. */
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

  /** Only the first three ask when a dead holder's time is over: who stood behind three that left does so at its poll. */
  #waiterLeft({ keys }: WaitingRequest): void {
    const isFirst = keys.every((key) => !this.keyHistory(key).hadWaiterLeave);
    if (this.#hasDead && isFirst) {
      keys.forEach((key) => {
        this.keyHistory(key).hadWaiterLeave = true;
        this.reserve({ key }, pollMs);
      });
    }
  }

  /** @param isAgain it is let into what it holds already: nobody is overtaken by that */
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

  /** Its caller gives it back now. */
  released(lease: WatchedLeases): void {
    for (const keyLease of keyLeasesOf(lease)) {
      this.keyHistory(keyLease.key).holdings.released(keyLease);
    }
  }

  /** Its caller gives it to another, who has `withinMs` to adopt it. */
  transferred(lease: WatchedLeases, withinMs: number): void {
    this.released(lease);
    this.reserve(lease, withinMs);
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

  /** Nobody has to get it for so long, behind what else is left of it. */
  reserve(target: { readonly key: string; readonly keys?: readonly string[] }, forMs: number): void {
    for (const history of (target.keys ?? [target.key]).map((key) => this.keyHistory(key))) {
      history.reservedUntil = Math.max(history.reservedUntil, this.findings.now) + forMs;
    }
  }

  /** How long some key is left to expire, or to be adopted, ms. */
  get reservedForMs(): number {
    const { now } = this.findings;
    return Math.max(0, ...Array.from(this.#keys.values(), ({ reservedUntil }) => reservedUntil - now));
  }

  /** A client never does anything again: it waits for nothing, and what it holds ends by itself, as does what it is granted yet. */
  clientDied(client: number): void {
    this.#hasDead = true;
    this.serverWatches.forEach((watch) => watch.clientDied?.(client));
    for (const [key, history] of this.#keys) {
      const reservedMs = history.clientDied(client);
      if (this.#isFaultFree) {
        this.reserve({ key }, reservedMs);
      }
    }
  }

  /** What a caller was told that it must not be told where nothing went wrong. */
  failUnlessFaulty(check: CheckName, text: string): void {
    if (this.#isFaultFree) {
      this.fail(check, text);
    }
  }

  /** A node forgets from now on what it has granted. */
  dataLost(): void {
    this.#dataLostAt = this.findings.now;
  }

  /** A release says that a lease with time left was lost: only a node that forgot its grant may have lost it. */
  releaseRefused(lease: WatchedLeases, what: string): void {
    const since = Math.min(
      ...keyLeasesOf(lease).map((keyLease) => this.keyHistory(keyLease.key).holdings.since(keyLease)),
    );
    if (since > this.#dataLostAt) {
      this.fail("release", what);
    } else {
      this.findings.skip("release: a node forgot the grant");
    }
  }

  /** From now on nobody may wait longer for a free lock. */
  setFreeBound(boundMs: number): void {
    this.#progress.setFreeBound(boundMs, this.#keys.values());
  }

  /** A given lease that was not adopted expires, as that of a dead process does. */
  leaseAbandoned(ttlMs: number): void {
    this.abandonedTtlsMs.push(ttlMs);
    if (this.#isFaultFree) {
      this.setFreeBound(faultFreeBoundMs(this.#schedule) + afterExpiryMs);
    }
  }

  /** Since when nobody may wait longer for what he could have, and how long. */
  get freeBound(): { readonly since: number; readonly ms: number } {
    return this.#progress.freeBound;
  }

  fail(check: CheckName, text: string): void {
    this.findings.add(check, text);
  }

  /** After everything that happens. */
  check(): void {
    this.#checkServers();
    for (const [key, history] of this.#keys) {
      const { holdings, order } = history;
      holdings.check();
      order.check();
      for (const one of holdings.leases) {
        if (this.#losses.isReported(one)) {
          holdings.leases.delete(one);
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

  #checkServers(): void {
    this.serverWatches.forEach((watch) => {
      watch.check();
    });
  }

  /** Whether nothing goes wrong for a client since then. */
  #isQuietSince(client: number, since: number): boolean {
    const isStorm = this.#schedule.scenario === "storm"; // else messages are lost all the time, or nothing goes wrong
    return this.#isFaultFree || (isStorm && this.disturbances.isQuietSince(client, since));
  }

  keyHistory(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (!history) {
      history = new KeyHistory(this.findings, key, this.#schedule, {
        forgotAt: () => (this.#schedule.engine === "server" ? this.#dataLostAt : -Infinity),
        isQuiet: (client, since) => this.#isQuietSince(client, since),
      });
      this.#keys.set(key, history);
    }
    return history;
  }
}
