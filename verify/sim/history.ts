import { Findings, type Check } from "./findings.ts";
import { Holdings, type WatchedLease } from "./holdings.ts";
import { Losses, type Standing } from "./losses.ts";
import { isFlawless, keepsLeases, mayForget, type Schedule, type Use } from "./schedule.ts";
import { Turns, type Asking } from "./turns.ts";

/** Until a client is known to the servers and their messages reach it, it has no place in a queue, ms. */
const acquaintanceMs = 500;
/** How much later than it wanted a caller may be answered, ms: it asks who holds the lock, and stops asking. */
const farewellMs = 300;
/** How long a try may take, ms: its command budget. */
const tryMs = 500;

interface Waiting {
  readonly asking: Asking;
  /** When it is to be answered at the latest; Infinity: it waits for ever. */
  dueBy: number;
}

/** One key. */
class KeyHistory {
  readonly holdings: Holdings;
  readonly turns: Turns;
  readonly waiting: Set<Waiting> = new Set();
  freeSince: number | undefined;
  /** Nobody may have it before: somebody left it to expire, or to be adopted. */
  takenUntil = 0;

  constructor(holdings: Holdings, turns: Turns) {
    this.holdings = holdings;
    this.turns = turns;
  }
}

/** Watches the leases of one world, as somebody who knows the true time, and finds what must never happen. */
export class History {
  readonly findings: Findings;
  /** How many leases there were. */
  grants = 0;
  /** Calls of callers. */
  operations = 0;
  #patienceMs = Infinity;
  readonly #keys = new Map<string, KeyHistory>();
  readonly #losses: Losses;
  readonly #standingOf: (client: number) => Standing;
  readonly #isFlawless: boolean;
  readonly #judgesExclusion: boolean;
  readonly #keepsLeases: boolean;
  readonly #firstSeen = new Map<number, number>();
  #serial = 0;

  constructor(now: () => number, schedule: Schedule, standingOf: (client: number) => Standing) {
    this.findings = new Findings(now);
    this.#losses = new Losses(this.findings, standingOf);
    this.#standingOf = standingOf;
    this.#isFlawless = isFlawless(schedule);
    this.#judgesExclusion = !mayForget(schedule);
    this.#keepsLeases = keepsLeases(schedule);
  }

  /** A caller asks from now on. */
  asks(use: Use, standsInLine: boolean): Asking {
    const { client, kind, waitMs, attemptId, key } = use;
    const { now } = this.findings;
    const waits = kind !== "try" && waitMs !== 0;
    this.#firstSeen.set(client, this.#firstSeen.get(client) ?? now);
    this.#serial += 1;
    const isPlain = waits && attemptId === undefined;
    const asking = {
      client,
      since: now,
      serial: this.#serial,
      standsInLine: standsInLine && isPlain,
      hasPlace: isPlain && this.isAcquainted(client),
      until: now + (waitMs ?? Infinity),
      isOver: false,
    };
    const history = this.#of(key);
    if (waits) {
      history.turns.begin(asking);
    }
    const mostMs = waits ? (waitMs ?? Infinity) + farewellMs : tryMs;
    history.waiting.add({ asking, dueBy: now + mostMs });
    return asking;
  }

  /** Whether the servers have known a client for a while. */
  isAcquainted(client: number): boolean {
    return this.findings.now - (this.#firstSeen.get(client) ?? this.findings.now) > acquaintanceMs;
  }

  /** It has its answer. */
  answered(key: string, asking: Asking): void {
    const { turns, waiting } = this.#of(key);
    turns.end(asking);
    for (const one of waiting) {
      if (one.asking === asking) {
        waiting.delete(one);
      }
    }
  }

  granted(asking: Asking, lease: WatchedLease, attemptId?: string): void {
    const history = this.#of(lease.key);
    this.grants += 1;
    const isHandedOver = history.holdings.granted(asking.client, lease, attemptId);
    if (attemptId === undefined) {
      history.turns.granted(asking, isHandedOver);
    }
    history.freeSince = undefined;
    this.look();
  }

  /** Its caller gives it back now. */
  released(lease: WatchedLease): void {
    this.#of(lease.key).holdings.released(lease);
  }

  /** Its caller gives it to another, who has `withinMs` to adopt it. */
  transferred(lease: WatchedLease, withinMs: number): void {
    this.released(lease);
    this.taken(lease.key, withinMs);
  }

  adopted(client: number, lease: WatchedLease, given: bigint): void {
    this.grants += 1;
    this.#of(lease.key).holdings.adopted(client, lease, given);
    this.look();
  }

  /** An operator ends the grant with that number. */
  breaks(key: string, fencingToken: bigint): void {
    this.#of(key).holdings.breaks(fencingToken);
  }

  /** Whether an operator has ended it. */
  isBroken(lease: WatchedLease): boolean {
    return [...this.#of(lease.key).holdings.held].some((one) => one.lease === lease && one.run.isBroken);
  }

  /** Nobody has to get it for so long, behind what else is left of it. */
  taken(key: string, forMs: number): void {
    const history = this.#of(key);
    history.takenUntil = Math.max(history.takenUntil, this.findings.now) + forMs;
  }

  /** How long some key is left to expire, or to be adopted, ms. */
  get leftForMs(): number {
    const { now } = this.findings;
    return Math.max(0, ...Array.from(this.#keys.values(), ({ takenUntil }) => takenUntil - now));
  }

  /** The same, and how long some key is still held. */
  get takenForMs(): number {
    const held = [...this.#keys.values()].flatMap(({ holdings }) => [...holdings.held]);
    return Math.max(this.leftForMs, ...held.map(({ lease }) => lease.remainingMs()));
  }

  /** A client never does anything again: it waits for nothing, and what it holds ends by itself. */
  gone(client: number): void {
    for (const { waiting, turns } of this.#keys.values()) {
      turns.gone(client);
      for (const one of waiting) {
        if (one.asking.client === client) {
          waiting.delete(one);
        }
      }
    }
  }

  /** What a caller was told that it must not be told where nothing went wrong. */
  complain(check: Check, what: string): void {
    if (this.#isFlawless) {
      this.fail(check, what);
    }
  }

  /** A release says that a lease with time left was lost. */
  refusesRelease(what: string): void {
    if (this.#keepsLeases) {
      this.fail("release", what);
    }
  }

  /** From now on nobody may wait longer for a free lock. */
  expect(patienceMs: number): void {
    this.#patienceMs = patienceMs;
    for (const history of this.#keys.values()) {
      history.freeSince = undefined;
    }
  }

  fail(check: Check, what: string): void {
    this.findings.add(check, what);
  }

  /** After everything that happens. */
  look(): void {
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
      this.#lookForFree(key, history);
    }
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
    const { now } = this.findings;
    if (history.holdings.isHeld || history.turns.isWaitedFor === false || now < history.takenUntil) {
      history.freeSince = undefined;
      return;
    }
    history.freeSince ??= now;
    const freeForMs = now - history.freeSince;
    if (freeForMs > this.#patienceMs) {
      this.fail("progress", `${key} has been free for ${freeForMs.toFixed(0)} ms with somebody waiting`);
      history.freeSince = undefined;
    }
  }

  #of(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (!history) {
      const holdings = new Holdings(this.findings, this.#judgesExclusion);
      history = new KeyHistory(holdings, new Turns(this.findings, key, this.#isFlawless));
      this.#keys.set(key, history);
    }
    return history;
  }
}
