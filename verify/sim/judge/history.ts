import { hasPermits, isShared, keysOf, weightOf } from "../plan/lock-mode.ts";
import { ClientFaults } from "./disturbances.ts";
import { Findings, type CheckName } from "./findings.ts";
import type { TrackedLease, SharedGroup, WatchedLease } from "./holdings.ts";
import { KeyHistory } from "./key-history.ts";
import { LossNotices, type ProcessHealth } from "./losses.ts";
import { keyLeasesOf, type WatchedLeases } from "./multi-lock.ts";
import type { LimitChange } from "./limits.ts";
import { afterExpiryMs, faultFreeBoundMs, pollMs } from "./patience.ts";
import { isFaultFree, type Schedule, type Use } from "../plan/schedule.ts";
import { unsyncedAheadMs, type WaitingRequest } from "./queue-order.ts";

/** Until a client is known to the servers and their messages reach it, it has no place in a queue, ms. */
const registrationMs = 500;
/** Where nothing goes wrong all servers have told it their time by then, ms: a way there and back. */
const clockSyncMs = 10;
/** How much later than it wanted a caller may be answered, ms: it asks who holds the lock, and stops asking. */
const waitTimeoutGraceMs = 300;
/** How long a try may take, ms: its command budget. */
const tryBudgetMs = 500;
/** Who asks for several keys gives back what it has before it answers, ms: the budget of a command, once more. */
const cleanUpMs = 1_500;

/** Watches the leases of one world, as somebody who knows the true time, and finds what must never happen. */
export class History {
  readonly findings: Findings;
  /** How many leases there were; of latches, how many counted or were let go. */
  grants = 0;
  /** Calls of callers. */
  operations = 0;
  /** The TTLs of given leases that were not adopted. */
  readonly abandonedTtlsMs: number[] = [];
  #freeBoundMs = Infinity;
  #boundSince = 0;
  readonly #keys = new Map<string, KeyHistory>();
  readonly #allKeys: Pick<KeyHistory, "freeSince"> = { freeSince: undefined };
  /** What is looked at on servers, before leases are: a grant may be told in the same moment as a limit was changed. */
  serverWatches: readonly { check(): void; clientDied?(client: number): void }[] = [];
  /** Hears of each lease as a caller is told of it. */
  onGrant: (key: string, number: number) => void = () => undefined;
  readonly disturbances: ClientFaults = new ClientFaults();
  readonly #losses: LossNotices;
  readonly #healthOf: (client: number) => ProcessHealth;
  readonly #schedule: Schedule;
  readonly #isFaultFree: boolean;
  /** When a node last forgot what it had granted; on a quorum that is one of a minority. */
  #dataLostAt = -Infinity;
  readonly #unsyncedAheadMs: number;
  readonly #firstRequestAt = new Map<number, number>();
  /** When a call of each client last ended: then it had an answer. */
  readonly #lastReplyAt = new Map<number, number>();
  /** When a call of each client last began, of those that began `introductionMs` apart. */
  readonly #lastRequestAt = new Map<number, number>();
  readonly #lastArrivalTo = new Map<number, number>();
  #serial = 0;
  #hasDead = false;

  constructor(now: () => number, schedule: Schedule, healthOf: (client: number) => ProcessHealth) {
    this.findings = new Findings(now);
    this.#losses = new LossNotices(this.findings, healthOf);
    this.#healthOf = healthOf;
    this.#schedule = schedule;
    this.#isFaultFree = isFaultFree(schedule);
    const { engine, nodes } = schedule;
    this.#unsyncedAheadMs = engine === "quorum" ? unsyncedAheadMs(nodes.map(({ offsetMs }) => offsetMs)) : 0;
  }

  /** A caller asks from now on. */
  requestStarted(use: Use, usesLocalQueue: boolean): WaitingRequest {
    const { now } = this.findings;
    this.#firstRequestAt.set(use.client, this.#firstRequestAt.get(use.client) ?? now);
    this.#serial += 1;
    const waits = use.kind !== "try" && use.waitMs !== 0;
    const request = this.#createRequest(use, waits, usesLocalQueue);
    const mostMs = waits ? request.until - now + waitTimeoutGraceMs : tryBudgetMs;
    const dueBy = now + mostMs + extraKeysMs(request.keys.length);
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

  #createRequest(use: Use, waits: boolean, usesLocalQueue: boolean): WaitingRequest {
    const { client, waitMs, attemptId, ttlMs, mode } = use;
    const { now } = this.findings;
    const keys = keysOf(use);
    const isPlain = waits && attemptId === undefined && isSentDirectly(use);
    return {
      client,
      keys,
      weight: weightOf(mode),
      isShared: isShared(mode),
      ttlMs,
      since: now,
      judgedSince: this.#judgedSince(use, usesLocalQueue),
      ...this.#arrivalWindow(client, waitMs ?? Infinity),
      serial: this.#serial,
      ...localQueueState(mode, { standsInLine: usesLocalQueue, waits, isPlain }),
      isQueued: isPlain && this.isRegistered(client) && !(usesLocalQueue && this.#isBehindUnsynced(use)),
      isDequeued: false,
      wasGranted: false,
      isSettled: false,
    };
  }

  #rateOf(client: number): number {
    return this.#schedule.clients[client]?.rate ?? 1;
  }

  #arrivalWindow(
    client: number,
    waitMs: number,
  ): Pick<WaitingRequest, "arrivedFrom" | "arrivedTo" | "until"> {
    const { now } = this.findings;
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
    const { now } = this.findings;
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

  /** Of its client's own line somebody who has no place by the time of his arrival stands at the head. */
  #isBehindUnsynced({ client, key }: Use): boolean {
    return [...this.keyHistory(key).order.waiting].some(
      (other) => other.client === client && other.isInLocalQueue && !other.isQueued,
    );
  }

  #judgedSince({ client, key }: Use, usesLocalQueue: boolean): number {
    const earlier = [...this.keyHistory(key).order.waiting].filter(
      (one) => one.client === client && one.isInLocalQueue,
    );
    const { now } = this.findings;
    return usesLocalQueue ? Math.min(now, ...earlier.map(({ judgedSince }) => judgedSince)) : now;
  }

  /** Whether the servers have known a client for a while. */
  isRegistered(client: number): boolean {
    return this.#knownForMs(client) > registrationMs;
  }

  #knownForMs(client: number): number {
    const { now } = this.findings;
    return now - (this.#firstRequestAt.get(client) ?? now);
  }

  /** It has its answer. */
  requestSettled(request: WaitingRequest): void {
    this.#lastReplyAt.set(request.client, this.findings.now);
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
    this.#allKeys.freeSince = undefined;
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

  /** An operator ends the grant with that number, which is that client's by what he was told. */
  operatorBreaks(key: string, fencingToken: bigint, client: number): void {
    const { kind } = this.#schedule;
    const { holdings, order } = this.keyHistory(key);
    holdings.breaks(fencingToken, client, kind === "read-write" || kind === "semaphore");
    const isHeld = Array.from(holdings.leases).some((lease) => lease.client === client);
    order.grantBroken(client, isHeld || holdings.wasGranted(fencingToken));
  }

  /** An operator asks for another limit; clients name that one from now on. */
  limitRequested(key: string, limit: number): LimitChange {
    return this.keyHistory(key).limits.requested(limit);
  }

  /** An engine is told to set it: in memory that is at once. One server is looked at instead: see `ServerRoom`. */
  limitSet(key: string, limit: number): void {
    if (this.#schedule.engine === "memory") {
      this.limitApplied(key, limit);
    }
  }

  /** A semaphore has this limit now. */
  limitApplied(key: string, limit: number): void {
    const { limits, order } = this.keyHistory(key);
    const wasAsked = limit === limits.now || limits.applied(this.findings.now, limit);
    if (!wasAsked) {
      this.fail("capacity", `${key} has the limit ${limit}, which nobody asked for`);
    }
    order.limitLowered(limit);
  }

  /** Whether an operator has ended it. */
  isBroken(lease: WatchedLeases): boolean {
    return this.breakOf(lease)();
  }

  /** @returns whether an operator has ended the lease, also after its release has begun */
  breakOf(lease: WatchedLeases): () => boolean {
    const { kind } = this.#schedule;
    const isShared = kind === "read-write" || kind === "semaphore";
    const breaks = keyLeasesOf(lease).map((keyLease) => {
      const { holdings } = this.keyHistory(keyLease.key);
      const runs = [...holdings.leases]
        .filter((one) => one.lease === keyLease)
        .map(({ grantRun }) => grantRun);
      return () => runs.some((run) => run.isBroken) || holdings.isBroken(keyLease.fencingToken, isShared);
    });
    return () => breaks.some((isBroken) => isBroken());
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
    for (const [key, { waiting, order, holdings }] of this.#keys) {
      order.clientDied(client);
      const current = [...holdings.leases].filter(({ lease }) => lease.remainingMs() > 0);
      const granted = [...current, ...holdings.downgrading].filter((one) => one.client === client);
      const longestMs = Math.max(0, ...granted.map(({ ttlMs }) => ttlMs));
      const pending = [...waiting].filter(({ request }) => request.client === client);
      pending.forEach((one) => waiting.delete(one));
      if (this.#isFaultFree) {
        this.reserve(
          { key },
          pending.reduce((sum, { request }) => sum + request.ttlMs, longestMs),
        );
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
    this.#freeBoundMs = boundMs;
    this.#boundSince = this.findings.now;
    for (const history of [...this.#keys.values(), this.#allKeys]) {
      history.freeSince = undefined;
    }
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
    return { since: this.#boundSince, ms: this.#freeBoundMs };
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
      this.#checkDelays(key, history);
      if (this.#schedule.kind !== "all") {
        this.#checkFreeKey(key, history);
      }
    }
    if (this.#schedule.kind === "all") {
      this.#checkFreeKeys();
    }
  }

  #checkServers(): void {
    this.serverWatches.forEach((watch) => {
      watch.check();
    });
  }

  #checkDelays(key: string, { waiting }: KeyHistory): void {
    const { now } = this.findings;
    for (const one of waiting) {
      if (now > one.dueBy && !this.#healthOf(one.request.client).hadFault) {
        one.dueBy = Infinity;
        this.fail(
          "progress",
          `client ${one.request.client} has no answer about ${key} since ${one.request.since.toFixed(3)}`,
        );
      }
    }
  }

  #checkFreeKey(key: string, history: KeyHistory): void {
    const isFree = history.canGrantFirst && this.findings.now >= history.reservedUntil;
    this.#expectGrant(key, history, isFree);
  }

  /** Who waits for several has some of them, unseen: but when nobody has all that he wants, somebody can have it. */
  #checkFreeKeys(): void {
    const histories = [...this.#keys.values()];
    const isHeld = histories.some(
      ({ holdings, reservedUntil }) => holdings.isHeld || this.findings.now < reservedUntil,
    );
    const isFree = !isHeld && histories.some(({ order }) => order.waiting.size > 0);
    this.#expectGrant("every key", this.#allKeys, isFree);
  }

  #expectGrant(description: string, since: { freeSince: number | undefined }, isFree: boolean): void {
    const { now } = this.findings;
    since.freeSince = isFree ? (since.freeSince ?? now) : undefined;
    const freeForMs = now - (since.freeSince ?? now);
    if (freeForMs > this.#freeBoundMs) {
      this.fail(
        "progress",
        `${description} has been free for ${freeForMs.toFixed(0)} ms with somebody waiting`,
      );
      since.freeSince = undefined;
    }
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

/** Of several keys each is tried once behind the deadline, and what was had of them is given back. */
function extraKeysMs(keys: number): number {
  return keys > 1 ? cleanUpMs + keys * tryBudgetMs : 0;
}

/** In which line of its client somebody stands. */
function localQueueState(
  as: Use["mode"],
  {
    standsInLine: usesLocalQueue,
    waits,
    isPlain,
  }: Readonly<Record<"standsInLine" | "waits" | "isPlain", boolean>>,
): Pick<WaitingRequest, "isInLocalQueue" | "usesLocalQueue" | "mayWaitInMemory" | "headSince"> {
  return {
    isInLocalQueue: usesLocalQueue && waits && !isShared(as),
    usesLocalQueue: usesLocalQueue && isPlain && !isShared(as),
    mayWaitInMemory: usesLocalQueue && waits && hasPermits(as),
    headSince: Infinity,
  };
}

/** Repeats share a grant where they ask with the same `Locks`. */
export function attemptKey(client: number, attemptId: string): string {
  return `client ${client}, ${attemptId}`;
}

function driftOfRate(rate: number): number {
  return Math.abs(rate - 1);
}

/** Who wants several stands in no queue but that of the first it has not got; who is in a session, behind the others of it. */
function isSentDirectly(use: Use): boolean {
  const { mode } = use;
  return keysOf(use).length === 1 && !(mode?.kind === "nested" && mode.session !== undefined);
}
