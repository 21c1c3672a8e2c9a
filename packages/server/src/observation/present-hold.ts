import type { Holder } from "holdfast";

import { holdOf, type Hold } from "./history.ts";

/** A healthy client renews after a third of the TTL. A hold with less than this part of its TTL left is late. */
const lateFraction = 0.5;
/** How often a late hold is read again, as a part of its TTL. */
const repeatFraction = 0.125;

/** A hold in force. A watch reports no renewals, so a hold that seems late is read again. Times are of this machine's clock. */
export class PresentHold {
  readonly hold: Hold;
  /** When the hold expires without a further renewal; null: no expiry. */
  #expiresAt: number | null = null;
  /** The longest remaining time that was seen: a lower bound of the TTL. */
  #ttlMs = 0;
  #readAt = 0;
  /** The smallest difference of this machine's clock to the engine's that a reading had: the one that arrived with the least delay. */
  #aheadMs = Infinity;
  /** When the holder was missing for the first time. */
  #missingAt: number | undefined;

  constructor(key: string, holder: Holder, now: number) {
    this.hold = holdOf(key, holder, now - (holder.heldMs ?? 0));
    this.read(holder, now);
  }

  /** Notes the state of the holder. */
  read({ remainingMs, since, heldMs }: Holder, now: number): void {
    // A state that arrived late is older than it seems, and its hold would seem to end before its expiry.
    const engineNow = since === undefined || heldMs === undefined ? undefined : since + heldMs;
    this.#aheadMs = Math.min(this.#aheadMs, engineNow === undefined ? Infinity : now - engineNow);
    const readAt = engineNow === undefined ? now : engineNow + this.#aheadMs;
    this.#expiresAt = remainingMs === undefined ? null : readAt + remainingMs;
    this.#ttlMs = Math.max(this.#ttlMs, remainingMs ?? 0);
    this.#readAt = now;
  }

  missing(now: number): void {
    this.#missingAt ??= now;
  }

  /** Whether the hold seems late, and was not read for a while. */
  isDue(now: number): boolean {
    return (
      this.#missingAt === undefined &&
      this.#isLateAt(now) &&
      now - this.#readAt > this.#ttlMs * repeatFraction
    );
  }

  /** The hold with its end. Without a state from the last part of its TTL, a renewal may have been missed: the end is unknown. */
  ended(isBroken: boolean, now: number): Hold {
    const until = this.#missingAt ?? now;
    const mayBeExpired = this.#expiresAt !== null && this.#expiresAt <= until;
    const end = mayBeExpired ? (this.#isLateAt(this.#readAt) ? "expired" : "unknown") : "released";
    return { ...this.hold, until, end: isBroken ? "broken" : end };
  }

  #isLateAt(time: number): boolean {
    return this.#expiresAt !== null && this.#expiresAt - time <= this.#ttlMs * lateFraction;
  }
}

export function nameOf({ fencingToken, owner }: Holder): string {
  return fencingToken?.toString() ?? owner;
}
