import type { Findings } from "./findings.ts";
import type { KeyHistory } from "./key-history.ts";
import type { ProcessHealth } from "./losses.ts";

/** Checks that each request gets its reply in time, and that a free lock is granted in time. */
export class ProgressCheck {
  readonly #findings: Findings;
  readonly #healthOf: (client: number) => ProcessHealth;
  #freeBoundMs = Infinity;
  #boundSince = 0;
  readonly #allKeys: Pick<KeyHistory, "freeSince"> = { freeSince: undefined };

  constructor(findings: Findings, healthOf: (client: number) => ProcessHealth) {
    this.#findings = findings;
    this.#healthOf = healthOf;
  }

  /** From now on no caller may wait longer for a free lock. */
  setFreeBound(boundMs: number, histories: Iterable<KeyHistory>): void {
    this.#freeBoundMs = boundMs;
    this.#boundSince = this.#findings.now;
    for (const history of [...histories, this.#allKeys]) {
      history.freeSince = undefined;
    }
  }

  /** How long a caller may wait for a free lock, and since when this bound applies. */
  get freeBound(): { readonly since: number; readonly ms: number } {
    return { since: this.#boundSince, ms: this.#freeBoundMs };
  }

  granted(): void {
    this.#allKeys.freeSince = undefined;
  }

  checkDelays(key: string, { waiting }: KeyHistory): void {
    const { now } = this.#findings;
    for (const one of waiting) {
      if (now > one.dueBy && !this.#healthOf(one.request.client).hadFault) {
        one.dueBy = Infinity;
        this.#findings.add(
          "progress",
          `client ${one.request.client} has had no reply about ${key} since ${one.request.since.toFixed(3)}`,
        );
      }
    }
  }

  checkFreeKey(key: string, history: KeyHistory): void {
    const isFree = history.canGrantFirst && this.#findings.now >= history.reservedUntil;
    this.#expectGrant(key, history, isFree);
  }

  /** A waiter for several keys may hold some of them, unseen by the judge. If no caller holds all its keys, one caller can get all its keys. */
  checkFreeKeys(histories: readonly KeyHistory[]): void {
    const isHeld = histories.some(
      ({ holdings, reservedUntil }) => holdings.isHeld || this.#findings.now < reservedUntil,
    );
    const isFree = !isHeld && histories.some(({ order }) => order.waiting.size > 0);
    this.#expectGrant("every key", this.#allKeys, isFree);
  }

  #expectGrant(description: string, since: { freeSince: number | undefined }, isFree: boolean): void {
    const { now } = this.#findings;
    since.freeSince = isFree ? (since.freeSince ?? now) : undefined;
    const freeForMs = now - (since.freeSince ?? now);
    if (freeForMs > this.#freeBoundMs) {
      this.#findings.add(
        "progress",
        `${description} has been free for ${freeForMs.toFixed(0)} ms while a caller waits`,
      );
      since.freeSince = undefined;
    }
  }
}
