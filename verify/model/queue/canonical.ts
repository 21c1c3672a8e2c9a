import { flags, phases, type Board } from "./board.ts";
import type { TurnsSettings } from "./settings.ts";

/** Of these the numbers decide otherwise than by the rules that make a number forgettable. */
const keepNumbers: readonly (string | undefined)[] = [
  "yield-without-number",
  "yielded-vote-counts",
  "yield-after-election",
  "no-restart-guard",
];

/**
 * Brings a state to the form that stands for all that cannot be told from it by anything that may still happen:
 * - a client that does not wait any more forgets what it knew, and answers grants that are on their way to it by a release (it
 *   would when they come; nobody sees the difference, as the release is as late as it likes);
 * - a telling that its receiver would drop is dropped;
 * - a number that cannot come again is forgotten: a node only counts up;
 * - where numbers are only compared with others of the same node, they are counted anew from 1 in the same order.
 */
export class Tidying {
  readonly #board: Board;
  readonly #settings: TurnsSettings;
  readonly #keepsNumbers: boolean;

  constructor(board: Board, settings: TurnsSettings) {
    this.#board = board;
    this.#settings = settings;
    this.#keepsNumbers = keepNumbers.includes(settings.mutant);
  }

  tidy(): void {
    const board = this.#board;
    for (let a = 0; a < board.attempts; a += 1) {
      this.#forgetRounds(a);
    }
    for (let n = 0; n < board.nodes; n += 1) {
      for (let a = 0; a < board.attempts; a += 1) {
        if (board.isSeeking(a)) {
          this.#dropTellings(a, n);
        } else if (board.phase(a) !== phases.idle) {
          this.#forget(a, n);
        }
        this.#forgetNumbers(a, n);
      }
      if (this.#settings.numbers !== "agreed") {
        this.#renumber(n);
      }
    }
  }

  #forget(a: number, n: number): void {
    const board = this.#board;
    const { mutant } = this.#settings;
    const isHolding = board.phase(a) === phases.holding;
    const hasGrant = board.grants(a, n) !== 0;
    const vote = isHolding ? board.vote(a, n) : 0;
    const inquiries = isHolding && mutant === "yield-after-election" ? board.inquiries(a, n) : 0;
    board.forgetLink(a, n);
    board.setVote(a, n, vote);
    board.setInquiries(a, n, inquiries);
    if (board.phase(a) === phases.ended && hasGrant && mutant !== "late-grant-kept") {
      board.raise(a, n, flags.release);
    }
  }

  /** Of who does not ask for a number any more. The proposed one is still said by what is under way. */
  #forgetRounds(a: number): void {
    const board = this.#board;
    if (!board.isSeeking(a)) {
      board.setRound(a, 0);
      board.setFloor(a, 0);
      let isUnderWay = false;
      for (let n = 0; n < board.nodes; n += 1) {
        isUnderWay ||= board.has(a, n, flags.agree);
      }
      if (!isUnderWay) {
        board.setProposed(a, 0);
      }
    }
  }

  #dropTellings(a: number, n: number): void {
    const board = this.#board;
    const vote = board.vote(a, n);
    const known = this.#settings.numbers === "agreed" ? vote - 1 : vote; // a repeat tells it for a later round
    const given = this.#settings.mutant === "yielded-vote-counts" ? 0 : board.yielded(a, n);
    board.setGrants(a, n, above(board.grants(a, n), Math.max(known, given)));
    const inquired = Math.max(board.inquired(a, n), board.yielded(a, n));
    board.setInquiries(a, n, above(board.inquiries(a, n), inquired));
  }

  /** A node gives greater numbers only: one that is nobody's present grant, and under way nowhere, was the last of its kind. */
  #forgetNumbers(a: number, n: number): void {
    const board = this.#board;
    const yielded = board.yielded(a, n);
    const inquired = board.inquired(a, n);
    if (this.#keepsNumbers || (yielded === 0 && inquired === 0)) {
      return;
    }
    const present = board.holder(n) === a + 1 ? board.number(n) : 0;
    if (present === 0 || present > yielded) {
      board.setYielded(a, n, 0);
      if (board.has(a, n, flags.yield)) {
        board.clear(a, n, flags.yield);
        board.raise(a, n, flags.acquire); // it comes to the same
      }
    }
    if (inquired <= yielded || !this.#isExpected(a, n, inquired, present)) {
      board.setInquired(a, n, 0);
    }
  }

  /** A vote with this number or a smaller one is there, or may still come. */
  #isExpected(a: number, n: number, number: number, present: number): boolean {
    const board = this.#board;
    const vote = board.vote(a, n);
    const isOfVote = vote > 0 && vote <= number;
    return isOfVote || (present > 0 && present <= number) || !isEmptyUpTo(board.grants(a, n), number);
  }

  #renumber(n: number): void {
    const board = this.#board;
    const isHeld = board.holder(n) !== 0;
    let used = isHeld ? 1 << board.number(n) : 0;
    for (let a = 0; a < board.attempts; a += 1) {
      used |= (1 << board.vote(a, n)) | (1 << board.yielded(a, n)) | (1 << board.inquired(a, n));
      used |= (board.grants(a, n) | board.inquiries(a, n)) << 1;
    }
    used >>>= 1; // 0 is no number
    const count = onesIn(used);
    if (used !== (1 << count) - 1) {
      for (let a = 0; a < board.attempts; a += 1) {
        board.setVote(a, n, rankOf(board.vote(a, n), used));
        board.setYielded(a, n, rankOf(board.yielded(a, n), used));
        board.setInquired(a, n, rankOf(board.inquired(a, n), used));
        board.setGrants(a, n, ranksOf(board.grants(a, n), used));
        board.setInquiries(a, n, ranksOf(board.inquiries(a, n), used));
      }
    }
    board.setNumber(n, isHeld ? rankOf(board.number(n), used) : count);
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

/** The place of a number among those that are used, from 1. */
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
