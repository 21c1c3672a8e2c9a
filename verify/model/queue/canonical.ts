import { flags, phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";
import type { QueueSettings } from "./settings.ts";

/** Mutants in which numbers have a further effect, so that the rules for forgetting numbers do not apply. */
const mutantsKeepingNumbers: readonly (string | undefined)[] = [
  "yield-without-number",
  "yielded-vote-counts",
  "yield-after-election",
  "no-restart-guard",
];

/**
 * Brings a state to a form that represents all states with the same possible futures.
 *
 * A client that no longer waits has no knowledge, and answers grants in transit by a release. The difference is not visible, because
 * the release may be arbitrarily late. A message that its receiver would drop is dropped.
 *
 * A number that cannot occur again is removed, because a node only counts up. If numbers are compared only within a node, they are
 * renumbered from 1, in the same order.
 */
export class Canonicalizer {
  readonly #layout: StateLayout;
  readonly #settings: QueueSettings;
  readonly #keepsNumbers: boolean;

  constructor(layout: StateLayout, settings: QueueSettings) {
    this.#layout = layout;
    this.#settings = settings;
    this.#keepsNumbers = mutantsKeepingNumbers.includes(settings.mutant);
  }

  canonicalize(): void {
    const layout = this.#layout;
    for (let a = 0; a < layout.attempts; a += 1) {
      this.#clearRounds(a);
    }
    for (let n = 0; n < layout.nodes; n += 1) {
      for (let a = 0; a < layout.attempts; a += 1) {
        if (layout.isAcquiring(a)) {
          this.#dropIgnoredMessages(a, n);
        } else if (layout.phase(a) !== phases.idle) {
          this.#clearClient(a, n);
        }
        this.#clearNumbers(a, n);
      }
      if (this.#settings.numbers !== "agreed") {
        this.#renumber(n);
      }
    }
  }

  #clearClient(a: number, n: number): void {
    const layout = this.#layout;
    const { mutant } = this.#settings;
    const isHolding = layout.phase(a) === phases.holding;
    const hasGrant = layout.grants(a, n) !== 0;
    const vote = isHolding ? layout.vote(a, n) : 0;
    const inquiries = isHolding && mutant === "yield-after-election" ? layout.inquiries(a, n) : 0;
    layout.forgetLink(a, n);
    layout.setVote(a, n, vote);
    layout.setInquiries(a, n, inquiries);
    if (layout.phase(a) === phases.ended && hasGrant && mutant !== "late-grant-kept") {
      layout.raise(a, n, flags.release);
    }
  }

  /** Clears the rounds of an attempt that no longer requests a number. Messages in transit still contain the proposed one. */
  #clearRounds(a: number): void {
    const layout = this.#layout;
    if (!layout.isAcquiring(a)) {
      layout.setRound(a, 0);
      layout.setFloor(a, 0);
      let isUnderWay = false;
      for (let n = 0; n < layout.nodes; n += 1) {
        isUnderWay ||= layout.has(a, n, flags.agree);
      }
      if (!isUnderWay) {
        layout.setProposed(a, 0);
      }
    }
  }

  #dropIgnoredMessages(a: number, n: number): void {
    const layout = this.#layout;
    const vote = layout.vote(a, n);
    const known = this.#settings.numbers === "agreed" ? vote - 1 : vote; // a repeat reports the number in a later round
    const given = this.#settings.mutant === "yielded-vote-counts" ? 0 : layout.yielded(a, n);
    layout.setGrants(a, n, above(layout.grants(a, n), Math.max(known, given)));
    const inquired = Math.max(layout.inquired(a, n), layout.yielded(a, n));
    layout.setInquiries(a, n, above(layout.inquiries(a, n), inquired));
  }

  /** A node only gives larger numbers. So a number is removed if it belongs to no current grant and to no message in transit. */
  #clearNumbers(a: number, n: number): void {
    const layout = this.#layout;
    const yielded = layout.yielded(a, n);
    const inquired = layout.inquired(a, n);
    if (this.#keepsNumbers || (yielded === 0 && inquired === 0)) {
      return;
    }
    const present = layout.holder(n) === a + 1 ? layout.fence(n) : 0;
    if (present === 0 || present > yielded) {
      layout.setYielded(a, n, 0);
      if (layout.has(a, n, flags.yield)) {
        layout.clear(a, n, flags.yield);
        layout.raise(a, n, flags.acquire); // the effect is the same
      }
    }
    if (inquired <= yielded || !this.#mayArrive(a, n, inquired, present)) {
      layout.setInquired(a, n, 0);
    }
  }

  /** Whether a vote with this number or a smaller one exists, or may still arrive. */
  #mayArrive(a: number, n: number, number: number, present: number): boolean {
    const layout = this.#layout;
    const vote = layout.vote(a, n);
    const isOfVote = vote > 0 && vote <= number;
    return isOfVote || (present > 0 && present <= number) || !isEmptyUpTo(layout.grants(a, n), number);
  }

  #renumber(n: number): void {
    const layout = this.#layout;
    const isHeld = layout.holder(n) !== 0;
    let used = isHeld ? 1 << layout.fence(n) : 0;
    for (let a = 0; a < layout.attempts; a += 1) {
      used |= (1 << layout.vote(a, n)) | (1 << layout.yielded(a, n)) | (1 << layout.inquired(a, n));
      used |= (layout.grants(a, n) | layout.inquiries(a, n)) << 1;
    }
    used >>>= 1; // 0 is not a number
    const count = onesIn(used);
    if (used !== (1 << count) - 1) {
      for (let a = 0; a < layout.attempts; a += 1) {
        layout.setVote(a, n, rankOf(layout.vote(a, n), used));
        layout.setYielded(a, n, rankOf(layout.yielded(a, n), used));
        layout.setInquired(a, n, rankOf(layout.inquired(a, n), used));
        layout.setGrants(a, n, ranksOf(layout.grants(a, n), used));
        layout.setInquiries(a, n, ranksOf(layout.inquiries(a, n), used));
      }
    }
    layout.setFence(n, isHeld ? rankOf(layout.fence(n), used) : count);
  }
}

function above(mask: number, number: number): number {
  return number > 0 ? mask & ~((1 << number) - 1) : mask;
}

function isEmptyUpTo(mask: number, number: number): boolean {
  return (mask & ((1 << number) - 1)) === 0;
}

function onesIn(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) {
    count += 1;
  }
  return count;
}

/** The rank of a number among the used numbers, from 1. */
function rankOf(number: number, used: number): number {
  return number === 0 ? 0 : onesIn(used & ((1 << number) - 1));
}

function ranksOf(mask: number, used: number): number {
  let ranks = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) {
    const number = 32 - Math.clz32(rest & -rest);
    ranks |= 1 << (rankOf(number, used) - 1);
  }
  return ranks;
}
