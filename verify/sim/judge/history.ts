import { hasPermits, isShared, keysOf, weightOf } from "../plan/lock-mode.ts";
import { Disturbances } from "./disturbances.ts";
import { Findings, type Check } from "./findings.ts";
import type { Held, Sharing, WatchedLease } from "./holdings.ts";
import { KeyHistory } from "./key-history.ts";
import { Losses, type Standing } from "./losses.ts";
import { partsOf, type WatchedWhole } from "./multi-lock.ts";
import { afterDeathMs, flawlessPatienceMs, pollMs } from "./patience.ts";
import { isFlawless, type Schedule, type Use } from "../plan/schedule.ts";
import { strangersAheadMs, type Asking } from "./queue-order.ts";

/** Until a client is known to the servers and their messages reach it, it has no place in a queue, ms. */
const acquaintanceMs = 500;
/** Where nothing goes wrong all servers have told it their time by then, ms: a way there and back. */
const introductionMs = 10;
/** How much later than it wanted a caller may be answered, ms: it asks who holds the lock, and stops asking. */
const farewellMs = 300;
/** How long a try may take, ms: its command budget. */
const tryMs = 500;
/** Who asks for several keys gives back what it has before it answers, ms: the budget of a command, once more. */
const givingBackMs = 1_500;

/** Watches the leases of one world, as somebody who knows the true time, and finds what must never happen. */
export class History {
  readonly findings: Findings;
  /** How many leases there were; of latches, how many counted or were let go. */
  grants = 0;
  /** Calls of callers. */
  operations = 0;
  /** The TTLs of given leases that were not adopted. */
  readonly abandonedTtlsMs: number[] = [];
  #patienceMs = Infinity;
  #expectsSince = 0;
  readonly #keys = new Map<string, KeyHistory>();
  readonly #allKeys: Pick<KeyHistory, "freeSince"> = { freeSince: undefined };
  /** What is looked at on servers, before leases are: a grant may be told in the same moment as a limit was changed. */
  rooms: readonly { look(): void; gone?(client: number): void }[] = [];
  /** Hears of each lease as a caller is told of it. */
  tellLease: (key: string, number: number) => void = () => undefined;
  readonly disturbances: Disturbances = new Disturbances();
  readonly #losses: Losses;
  readonly #standingOf: (client: number) => Standing;
  readonly #schedule: Schedule;
  readonly #isFlawless: boolean;
  /** When a node last forgot what it had granted; on a quorum that is one of a minority. */
  #forgotAt = -Infinity;
  readonly #strangersAheadMs: number;
  readonly #firstSeen = new Map<number, number>();
  /** When a call of each client last ended: then it had an answer. */
  readonly #lastHeard = new Map<number, number>();
  /** When a call of each client last began, of those that began `introductionMs` apart. */
  readonly #lastBegun = new Map<number, number>();
  readonly #lastPlacedTo = new Map<number, number>();
  #serial = 0;
  #hasDead = false;

  constructor(now: () => number, schedule: Schedule, standingOf: (client: number) => Standing) {
    this.findings = new Findings(now);
    this.#losses = new Losses(this.findings, standingOf);
    this.#standingOf = standingOf;
    this.#schedule = schedule;
    this.#isFlawless = isFlawless(schedule);
    const { engine, nodes } = schedule;
    this.#strangersAheadMs =
      engine === "quorum" ? strangersAheadMs(nodes.map(({ offsetMs }) => offsetMs)) : 0;
  }

  /** A caller asks from now on. */
  asks(use: Use, standsInLine: boolean): Asking {
    const { now } = this.findings;
    this.#firstSeen.set(use.client, this.#firstSeen.get(use.client) ?? now);
    this.#serial += 1;
    const waits = use.kind !== "try" && use.waitMs !== 0;
    const asking = this.#askingFor(use, waits, standsInLine);
    const mostMs = waits ? asking.until - now + farewellMs : tryMs;
    const dueBy = now + mostMs + extraMs(asking.keys.length);
    for (const key of asking.keys) {
      const { turns, waiting, holdings } = this.of(key);
      if (waits) {
        turns.begin(asking);
      }
      if (use.attemptId !== undefined) {
        holdings.asked(attemptOf(use.client, use.attemptId), now);
      }
      waiting.add({ asking, dueBy });
    }
    return asking;
  }

  #askingFor(use: Use, waits: boolean, standsInLine: boolean): Asking {
    const { client, waitMs, attemptId, ttlMs, as } = use;
    const { now } = this.findings;
    const keys = keysOf(use);
    const isPlain = waits && attemptId === undefined && isDirect(use);
    return {
      client,
      keys,
      weight: weightOf(as),
      isShared: isShared(as),
      ttlMs,
      since: now,
      judgedSince: this.#judgedSince(use, standsInLine),
      ...this.#placeOf(client, waitMs ?? Infinity),
      serial: this.#serial,
      ...lineOf(as, { standsInLine, waits, isPlain }),
      hasPlace: isPlain && this.isAcquainted(client) && !(standsInLine && this.#isLedByStranger(use)),
      isOut: false,
      wasGranted: false,
      isOver: false,
    };
  }

  #rateOf(client: number): number {
    return this.#schedule.clients[client]?.rate ?? 1;
  }

  #placeOf(
    client: number,
    waitMs: number,
  ): Pick<Asking, "placedFrom" | "placedTo" | "until" | "placeEndsFrom"> {
    const { now } = this.findings;
    const heardAt = this.#heardAt(client);
    const drift = this.#driftOf(client);
    const driftMs = drift * (now - heardAt);
    const aheadMs = this.#knownForMs(client) > introductionMs ? 0 : this.#strangersAheadMs;
    const until = now + waitMs / this.#rateOf(client); // its time is over by its own clock
    const placeEndsFrom = waitMs === Infinity ? Infinity : until - drift * (until - heardAt);
    const placedTo = Math.max(now + driftMs, this.#lastPlacedTo.get(client) ?? 0); // its places rise
    this.#lastPlacedTo.set(client, placedTo);
    return { placedFrom: now - aheadMs - driftMs, placedTo, until, placeEndsFrom };
  }

  /** When a client last learned the servers' time, at the earliest. A call that began a while ago has had a first answer. */
  #heardAt(client: number): number {
    const { now } = this.findings;
    const begunAt = this.#lastBegun.get(client) ?? -Infinity;
    if (now - begunAt > introductionMs) {
      this.#lastBegun.set(client, now);
      this.#lastHeard.set(client, Math.max(this.#lastHeard.get(client) ?? now, begunAt));
    }
    return this.#lastHeard.get(client) ?? now;
  }

  /** How far a client's clock and those of the servers part, of each ms without an answer. */
  #driftOf(client: number): number {
    return offOf(this.#rateOf(client)) + Math.max(0, ...this.#schedule.nodes.map(({ rate }) => offOf(rate)));
  }

  /** Of its client's own line somebody who has no place by the time of his arrival stands at the head. */
  #isLedByStranger({ client, key }: Use): boolean {
    return [...this.of(key).turns.waiting].some(
      (other) => other.client === client && other.isInLine && !other.hasPlace,
    );
  }

  #judgedSince({ client, key }: Use, standsInLine: boolean): number {
    const before = [...this.of(key).turns.waiting].filter((one) => one.client === client && one.isInLine);
    const { now } = this.findings;
    return standsInLine ? Math.min(now, ...before.map(({ judgedSince }) => judgedSince)) : now;
  }

  /** Whether the servers have known a client for a while. */
  isAcquainted(client: number): boolean {
    return this.#knownForMs(client) > acquaintanceMs;
  }

  #knownForMs(client: number): number {
    const { now } = this.findings;
    return now - (this.#firstSeen.get(client) ?? now);
  }

  /** It has its answer. */
  answered(asking: Asking): void {
    this.#lastHeard.set(asking.client, this.findings.now);
    for (const { turns, waiting } of asking.keys.map((key) => this.of(key))) {
      if (turns.waiting.has(asking) && !asking.wasGranted) {
        this.#leftQueue(asking);
      }
      turns.end(asking);
      for (const one of waiting) {
        if (one.asking === asking) {
          waiting.delete(one);
        }
      }
    }
  }

  /** Only the first three ask when a dead holder's time is over: who stood behind three that left does so at its poll. */
  #leftQueue({ keys }: Asking): void {
    const isFirst = keys.every((key) => !this.of(key).wasLeft);
    if (this.#hasDead && isFirst) {
      keys.forEach((key) => {
        this.of(key).wasLeft = true;
        this.taken({ key }, pollMs);
      });
    }
  }

  /** @param isAgain it is let into what it holds already: nobody is overtaken by that */
  granted(asking: Asking, lease: WatchedWhole, sharing?: Sharing, isAgain = false): void {
    this.#lookAtServers();
    this.grants += 1;
    asking.wasGranted = true;
    for (const part of partsOf(lease)) {
      const history = this.of(part.key);
      this.tellLease(part.key, Number(part.fencingToken));
      const handovers = history.holdings.granted(asking, part, sharing);
      if (!isAgain) {
        history.turns.granted(asking, handovers);
      }
      history.freeSince = undefined;
    }
    this.#allKeys.freeSince = undefined;
    this.look();
  }

  /** Its caller gives it back now. */
  released(lease: WatchedWhole): void {
    for (const part of partsOf(lease)) {
      this.of(part.key).holdings.released(part);
    }
  }

  /** Its caller gives it to another, who has `withinMs` to adopt it. */
  transferred(lease: WatchedWhole, withinMs: number): void {
    this.released(lease);
    this.taken(lease, withinMs);
  }

  adopted(client: number, lease: WatchedLease, given: bigint, terms: Pick<Held, "weight" | "ttlMs">): void {
    this.grants += 1;
    this.of(lease.key).holdings.adopted(client, lease, given, terms);
    this.look();
  }

  startsDowngrade(writer: WatchedLease): void {
    this.of(writer.key).holdings.startsDowngrade(writer);
  }

  endsDowngrade(writer: WatchedLease): void {
    this.of(writer.key).holdings.endsDowngrade(writer);
  }

  downgraded(client: number, lease: WatchedLease, writer: WatchedLease): void {
    this.of(lease.key).holdings.downgraded(client, lease, writer);
    this.look();
  }

  /** An operator ends the grant with that number, which is that client's by what he was told. */
  breaks(key: string, fencingToken: bigint, client: number): void {
    const { kind } = this.#schedule;
    const { holdings, turns } = this.of(key);
    holdings.breaks(fencingToken, client, kind === "read-write" || kind === "semaphore");
    turns.broken(
      client,
      Array.from(holdings.held).some((held) => held.client === client),
    );
  }

  /** An operator asks for another limit; clients name that one from now on. */
  asksForLimit(key: string, limit: number): void {
    this.of(key).limits.asked(limit);
  }

  /** An engine is told to set it: in memory that is at once. One server is looked at instead: see `ServerRoom`. */
  setLimit(key: string, limit: number): void {
    if (this.#schedule.engine === "memory") {
      this.hasLimit(key, limit);
    }
  }

  /** A semaphore has this limit now. */
  hasLimit(key: string, limit: number): void {
    const { limits, turns } = this.of(key);
    const wasAsked = limit === limits.now || limits.changed(this.findings.now, limit);
    if (!wasAsked) {
      this.fail("room", `${key} has the limit ${limit}, which nobody asked for`);
    }
    turns.narrowed(limit);
  }

  /** Whether an operator has ended it. */
  isBroken(lease: WatchedWhole): boolean {
    return this.breakOf(lease)();
  }

  /** @returns whether an operator has ended the lease, also after its release has begun */
  breakOf(lease: WatchedWhole): () => boolean {
    const { kind } = this.#schedule;
    const isShared = kind === "read-write" || kind === "semaphore";
    const breaks = partsOf(lease).map((part) => {
      const { holdings } = this.of(part.key);
      const runs = [...holdings.held].filter((one) => one.lease === part).map(({ run }) => run);
      return () => runs.some((run) => run.isBroken) || holdings.isBroken(part.fencingToken, isShared);
    });
    return () => breaks.some((isBroken) => isBroken());
  }

  /** Nobody has to get it for so long, behind what else is left of it. */
  taken(what: { readonly key: string; readonly keys?: readonly string[] }, forMs: number): void {
    for (const history of (what.keys ?? [what.key]).map((key) => this.of(key))) {
      history.takenUntil = Math.max(history.takenUntil, this.findings.now) + forMs;
    }
  }

  /** How long some key is left to expire, or to be adopted, ms. */
  get leftForMs(): number {
    const { now } = this.findings;
    return Math.max(0, ...Array.from(this.#keys.values(), ({ takenUntil }) => takenUntil - now));
  }

  /** A client never does anything again: it waits for nothing, and what it holds ends by itself, as does what it is granted yet. */
  gone(client: number): void {
    this.#hasDead = true;
    this.rooms.forEach((room) => room.gone?.(client));
    for (const [key, { waiting, turns, holdings }] of this.#keys) {
      turns.gone(client);
      const held = [...holdings.held].filter(({ lease }) => lease.remainingMs() > 0);
      const granted = [...held, ...holdings.downgrading].filter((one) => one.client === client);
      const longestMs = Math.max(0, ...granted.map(({ ttlMs }) => ttlMs));
      const left = [...waiting].filter(({ asking }) => asking.client === client);
      left.forEach((one) => waiting.delete(one));
      if (this.#isFlawless) {
        this.taken(
          { key },
          left.reduce((sum, { asking }) => sum + asking.ttlMs, longestMs),
        );
      }
    }
  }

  /** What a caller was told that it must not be told where nothing went wrong. */
  complain(check: Check, what: string): void {
    if (this.#isFlawless) {
      this.fail(check, what);
    }
  }

  /** A node forgets from now on what it has granted. */
  forgets(): void {
    this.#forgotAt = this.findings.now;
  }

  /** A release says that a lease with time left was lost: only a node that forgot its grant may have lost it. */
  refusesRelease(lease: WatchedWhole, what: string): void {
    const since = Math.min(...partsOf(lease).map((part) => this.of(part.key).holdings.since(part)));
    if (since > this.#forgotAt) {
      this.fail("release", what);
    } else {
      this.findings.excuse("release: a node forgot the grant");
    }
  }

  /** From now on nobody may wait longer for a free lock. */
  expect(patienceMs: number): void {
    this.#patienceMs = patienceMs;
    this.#expectsSince = this.findings.now;
    for (const history of [...this.#keys.values(), this.#allKeys]) {
      history.freeSince = undefined;
    }
  }

  /** A given lease that was not adopted expires, as that of a dead process does. */
  abandoned(ttlMs: number): void {
    this.abandonedTtlsMs.push(ttlMs);
    if (this.#isFlawless) {
      this.expect(flawlessPatienceMs(this.#schedule) + afterDeathMs);
    }
  }

  /** Since when nobody may wait longer for what he could have, and how long. */
  get patience(): { readonly since: number; readonly ms: number } {
    return { since: this.#expectsSince, ms: this.#patienceMs };
  }

  fail(check: Check, what: string): void {
    this.findings.add(check, what);
  }

  /** After everything that happens. */
  look(): void {
    this.#lookAtServers();
    for (const [key, history] of this.#keys) {
      const { holdings, turns } = history;
      holdings.look();
      turns.look();
      for (const one of holdings.held) {
        if (this.#losses.isTold(one)) {
          holdings.held.delete(one);
        }
      }
      this.#lookForDelays(key, history);
      if (this.#schedule.kind !== "all") {
        this.#lookForFree(key, history);
      }
    }
    if (this.#schedule.kind === "all") {
      this.#lookForAllFree();
    }
  }

  #lookAtServers(): void {
    this.rooms.forEach((room) => {
      room.look();
    });
  }

  #lookForDelays(key: string, { waiting }: KeyHistory): void {
    const { now } = this.findings;
    for (const one of waiting) {
      if (now > one.dueBy && !this.#standingOf(one.asking.client).wasDisturbed) {
        one.dueBy = Infinity;
        this.fail(
          "progress",
          `client ${one.asking.client} has no answer about ${key} since ${one.asking.since.toFixed(3)}`,
        );
      }
    }
  }

  #lookForFree(key: string, history: KeyHistory): void {
    const isFree = history.hasRoomForTheFirst && this.findings.now >= history.takenUntil;
    this.#expectGrant(key, history, isFree);
  }

  /** Who waits for several has some of them, unseen: but when nobody has all that he wants, somebody can have it. */
  #lookForAllFree(): void {
    const histories = [...this.#keys.values()];
    const isHeld = histories.some(
      ({ holdings, takenUntil }) => holdings.isHeld || this.findings.now < takenUntil,
    );
    const isFree = !isHeld && histories.some(({ turns }) => turns.waiting.size > 0);
    this.#expectGrant("every key", this.#allKeys, isFree);
  }

  #expectGrant(what: string, since: { freeSince: number | undefined }, isFree: boolean): void {
    const { now } = this.findings;
    since.freeSince = isFree ? (since.freeSince ?? now) : undefined;
    const freeForMs = now - (since.freeSince ?? now);
    if (freeForMs > this.#patienceMs) {
      this.fail("progress", `${what} has been free for ${freeForMs.toFixed(0)} ms with somebody waiting`);
      since.freeSince = undefined;
    }
  }

  /** Whether nothing goes wrong for a client since then. */
  #isQuietSince(client: number, since: number): boolean {
    const isStorm = this.#schedule.weather === "storm"; // else messages are lost all the time, or nothing goes wrong
    return this.#isFlawless || (isStorm && this.disturbances.isQuietSince(client, since));
  }

  of(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (!history) {
      history = new KeyHistory(this.findings, key, this.#schedule, {
        forgotAt: () => (this.#schedule.engine === "server" ? this.#forgotAt : -Infinity),
        isQuiet: (client, since) => this.#isQuietSince(client, since),
      });
      this.#keys.set(key, history);
    }
    return history;
  }
}

/** Of several keys each is tried once behind the deadline, and what was had of them is given back. */
function extraMs(keys: number): number {
  return keys > 1 ? givingBackMs + keys * tryMs : 0;
}

/** In which line of its client somebody stands. */
function lineOf(
  as: Use["as"],
  { standsInLine, waits, isPlain }: Readonly<Record<"standsInLine" | "waits" | "isPlain", boolean>>,
): Pick<Asking, "isInLine" | "standsInLine" | "mayWaitInMemory" | "leadsSince"> {
  return {
    isInLine: standsInLine && waits && !isShared(as),
    standsInLine: standsInLine && isPlain && !isShared(as),
    mayWaitInMemory: standsInLine && waits && hasPermits(as),
    leadsSince: Infinity,
  };
}

/** Repeats share a grant where they ask with the same `Locks`. */
export function attemptOf(client: number, attemptId: string): string {
  return `client ${client}, ${attemptId}`;
}

function offOf(rate: number): number {
  return Math.abs(rate - 1);
}

/** Who wants several stands in no queue but that of the first it has not got; who is in a session, behind the others of it. */
function isDirect(use: Use): boolean {
  const { as } = use;
  return keysOf(use).length === 1 && !(as?.kind === "nested" && as.session !== undefined);
}
