import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { LockEvent, Locks, LockState } from "holdfast";

import { AuditReader } from "./audit-reader.ts";
import { Contention, periodMs, type KeyContention } from "./contention.ts";
import { grantName, HoldHistory, newest, type Hold, type HoldTimes } from "./history.ts";
import { nameOf, PresentHold } from "./present-hold.ts";
import { within } from "./within.ts";

/** The watch ends if no request has asked for this time. Afterwards nothing is known, and the next request starts anew. */
const idleMs = 300_000;
const readyMs = 3_000;
/** A request waits at most this long for the audit. A later request has the breaks of a slower read. */
const auditMs = 1_000;
const maxShown = 50;
const maxBreaks = 1_000;
/** How often holds are checked for a missing renewal, and how many of them are read at once. */
const lateCheckMs = 250;
const maxReads = 50;

interface Seen {
  readonly state: LockState;
  /** When the oldest waiter began to wait, by this machine's clock, if the engine knows. */
  readonly waitingSince: number | undefined;
  /** The holds in force, by fencing token or owner. */
  readonly holds: ReadonlyMap<string, PresentHold>;
}

/** One watch of all locks, which all requests of this instance share. It runs while requests ask for its results. */
export class LockObservation {
  readonly #locks: Locks;
  readonly #present = new Map<string, Seen>();
  readonly #history = new HoldHistory();
  readonly #contention = new Contention();
  readonly #audit: AuditReader;
  /** The names of grants that this process broke, and whose ends the watch has not reported. */
  readonly #broken = new Set<string>();
  /** The keys that are being read again. */
  readonly #reading = new Set<string>();
  #askedAt = 0;
  #knownSince = 0;
  #ready: Promise<void> | undefined;
  #ending: AbortController | undefined;

  constructor(locks: Locks) {
    this.#locks = locks;
    this.#audit = new AuditReader(locks.admin, (records) => this.#history.correct(records));
  }

  /** When the present watch began, milliseconds since 1970. Earlier ends are not known. */
  get knownSince(): number {
    return this.#knownSince;
  }

  /** Starts the watch if none runs, and waits for its first snapshot. @returns whether the snapshot is complete */
  async ask(): Promise<boolean> {
    this.#askedAt = Date.now();
    if (!this.#ending) {
      this.#start();
    }
    return within(readyMs, this.#ready);
  }

  /** Like {@link LockObservation.ask}, for a request that reads ends. Reads the breaks of other operators if a hold has ended. */
  async askForEnds(): Promise<void> {
    await this.ask();
    await within(auditMs, this.#audit.read());
  }

  states(): LockState[] {
    return Array.from(this.#present.values(), ({ state }) => state);
  }

  /** How long the present grant has been held, ms. Undefined: it is not present. */
  heldMs(key: string, name: string): number | undefined {
    const hold = this.#present.get(key)?.holds.get(name)?.hold;
    return hold === undefined ? undefined : Date.now() - hold.since;
  }

  /** The holds of a key, newest first, at most 50. */
  history(key: string): Hold[] {
    const present = Array.from(this.#present.get(key)?.holds.values() ?? [], ({ hold }) => hold).reverse();
    return newest([...present, ...this.#history.of(key)], maxShown);
  }

  /** The last ends of all keys, newest first, at most 50. */
  ends(isShown: (key: string) => boolean): Hold[] {
    return this.#history.last(maxShown, isShown);
  }

  lostInLastHour(isShown: (key: string) => boolean): number {
    return this.#history.lostInLastHour(Date.now(), isShown);
  }

  /** How long holds usually last, by key. */
  holdTimes(isShown: (key: string) => boolean): HoldTimes[] {
    return this.#history.times(isShown);
  }

  contention(isShown: (key: string) => boolean): KeyContention[] {
    return this.#contention.top(Date.now(), isShown);
  }

  close(): void {
    this.#ending?.abort();
  }

  #start(): void {
    const ending = new AbortController();
    this.#ending = ending;
    this.#knownSince = Date.now();
    const period = setInterval(() => this.#endPeriod(), periodMs).unref();
    const lateCheck = setInterval(() => this.#readLate(), lateCheckMs).unref();
    subscribe("holdfast:broken", this.#onBroken);
    this.#ready = new Promise((resolve) => {
      void this.#watch(ending.signal, resolve).finally(() => {
        resolve();
        clearInterval(period);
        clearInterval(lateCheck);
        unsubscribe("holdfast:broken", this.#onBroken);
        this.#forget();
      });
    });
  }

  #endPeriod(): void {
    this.#contention.endPeriod();
    if (Date.now() - this.#askedAt > idleMs) {
      this.close();
    }
  }

  #forget(): void {
    this.#ending = undefined;
    this.#present.clear();
    this.#history.clear();
    this.#contention.clear();
    this.#broken.clear();
  }

  /** Never rejects. A failure of the engine ends the watch, and the next request starts another one. */
  async #watch(signal: AbortSignal, ready: () => void): Promise<void> {
    try {
      await this.#readyIfEmpty(ready);
      for await (const event of this.#locks.admin.watch({ prefix: "" }, { signal })) {
        this.#seen(event);
        if (event.type === "snapshot") {
          setImmediate(ready); // the other events of the snapshot come in the same turn
        }
      }
    } catch {
      // the next request starts again
    }
  }

  /** Without any lock the watch has no first event. */
  async #readyIfEmpty(ready: () => void): Promise<void> {
    const { locks, cursor } = await this.#locks.admin.list({ limit: 1 });
    if (locks.length === 0 && cursor === null) {
      ready();
    }
  }

  #seen({ type, key, state }: LockEvent): void {
    const now = Date.now();
    const before = this.#present.get(key);
    const holds = this.#holdsOf(state, before, now);
    for (const [name, hold] of before?.holds ?? []) {
      if (!holds.has(name)) {
        this.#ended(hold, now);
      }
    }
    this.#contention.waiting(key, state.waiterCount, waitingSince(state, now));
    if (type === "gone") {
      this.#present.delete(key);
    } else {
      this.#present.set(key, { state, waitingSince: waitingSince(state, now), holds });
    }
  }

  #holdsOf({ key, holders }: LockState, before: Seen | undefined, now: number): Map<string, PresentHold> {
    const holds = new Map<string, PresentHold>();
    for (const holder of holders) {
      const name = nameOf(holder);
      const known = before?.holds.get(name);
      const present = known ?? new PresentHold(key, holder, now);
      present.read(holder, now);
      holds.set(name, present);
      if (before && !known) {
        this.#granted(key, before, present.hold.since);
      }
    }
    return holds;
  }

  /** Reads holds again that seem late, because the watch reports no renewals. */
  #readLate(): void {
    const now = Date.now();
    for (const [key, { holds }] of this.#present) {
      if (this.#reading.size >= maxReads) {
        break;
      }
      if (!this.#reading.has(key) && Array.from(holds.values()).some((hold) => hold.isDue(now))) {
        void this.#readAgain(key);
      }
    }
  }

  /** Never rejects. The watch reports the changes. */
  async #readAgain(key: string): Promise<void> {
    this.#reading.add(key);
    const state = await this.#locks.inspect(key).catch(() => undefined);
    this.#reading.delete(key);
    const present = new Map(state?.holders.map((holder) => [nameOf(holder), holder]));
    const now = Date.now();
    for (const [name, hold] of (state && this.#present.get(key)?.holds) ?? []) {
      const holder = present.get(name);
      if (holder) {
        hold.read(holder, now);
      } else {
        hold.missing(now);
      }
    }
  }

  #granted(key: string, before: Seen, since: number): void {
    const { waitingSince: start } = before;
    if (start !== undefined) {
      this.#contention.waited(key, Math.max(0, since - start));
    }
  }

  #ended(present: PresentHold, now: number): void {
    const hold = present.ended(this.#broken.delete(grantName(present.hold)), now);
    this.#history.add(hold);
    this.#audit.holdEnded();
    this.#contention.held(hold.key, Math.max(0, (hold.until ?? now) - hold.since));
  }

  readonly #onBroken = (message: unknown): void => {
    const grant = message as { key: string; fencingToken: bigint };
    if (this.#history.wasBroken(grant)) {
      return; // the watch was faster than the reply to the break
    }
    this.#broken.add(grantName(grant));
    const [oldest] = this.#broken;
    if (this.#broken.size > maxBreaks && oldest !== undefined) {
      this.#broken.delete(oldest);
    }
  };
}

/** When the oldest waiter began to wait, by this machine's clock, if the engine knows. */
function waitingSince({ oldestWaitMs }: LockState, now: number): number | undefined {
  return oldestWaitMs === undefined ? undefined : now - oldestWaitMs;
}
