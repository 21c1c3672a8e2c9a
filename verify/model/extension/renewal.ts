import { continuity } from "../properties.ts";
import { absent, flags, others, phases, rounds, type Board } from "./board.ts";
import type { ExtensionSettings } from "./settings.ts";

/** The rounds in which a holder prolongs its lease. */
export class Renewal {
  readonly #board: Board;
  readonly #settings: ExtensionSettings;
  readonly #majority: number;

  constructor(board: Board, settings: ExtensionSettings, majority: number) {
    this.#board = board;
    this.#settings = settings;
    this.#majority = majority;
  }

  /** A round that was not confirmed is given up by that: answers to it are not waited for any more. */
  begin(a: number): void {
    const board = this.#board;
    let isOvertaken = false;
    for (let other = 0; other < board.attempts; other += 1) {
      const wasElected = board.phase(other) === phases.past;
      isOvertaken ||= wasElected && (board.begunSince(a) & (1 << other)) !== 0;
    }
    board.setRound(a, rounds.asking);
    board.setOvertaken(a, isOvertaken);
    for (let n = 0; n < board.nodes; n += 1) {
      if (!board.has(a, n, flags.isReplyToAcquire)) {
        board.setReply(a, n, 0);
      }
      board.clear(a, n, flags.counts | flags.isNew | flags.wantsRefill);
      board.setJoins(a, n, 0);
      board.raise(a, n, flags.extend);
    }
  }

  /** An answer to `extend`. */
  hear(a: number, n: number, reply: number): void {
    const board = this.#board;
    const isNew = board.has(a, n, flags.isNew);
    if (reply === absent || reply === others) {
      if (!isNew) {
        board.setMember(a, n, 0);
        board.raise(a, n, flags.isWithout);
      }
      if (reply === absent) {
        board.raise(a, n, flags.wantsRefill);
      }
    } else if (this.#isUnbroken(a, n, reply)) {
      board.raise(a, n, flags.counts);
    } else if (!isNew) {
      board.setMember(a, n, 0);
      board.setJoins(a, n, reply);
    }
    this.#decide(a);
  }

  #isUnbroken(a: number, n: number, number: number): boolean {
    const member = this.#board.member(a, n);
    if (member === 0 || this.#board.has(a, n, flags.isNew)) {
      return false;
    }
    return member === number || this.#settings.mutant === "break-unnoticed";
  }

  #decide(a: number): void {
    const board = this.#board;
    if (board.round(a) === rounds.asking && board.count(a, flags.counts) >= this.#needed(a)) {
      board.broken = board.isOvertaken(a) ? continuity : 0;
      board.setRound(a, rounds.confirmed);
      board.setBegunSince(a, 0);
      board.setOvertaken(a, false);
    }
    if (board.round(a) === rounds.confirmed) {
      for (let n = 0; n < board.nodes; n += 1) {
        board.clear(a, n, flags.counts); // they have
      }
      this.#doBehind(a);
    } else if (board.nodes - board.count(a, flags.isWithout) < this.#majority) {
      board.setPhase(a, phases.past); // lost
    } else if (this.#settings.mutant === "refill-counts-at-once") {
      this.#refill(a);
    }
  }

  #needed(a: number): number {
    if (this.#settings.mutant !== "majority-of-answers") {
      return this.#majority;
    }
    const board = this.#board;
    let answers = 0;
    for (let n = 0; n < board.nodes; n += 1) {
      const isOpen = board.has(a, n, flags.extend) || board.reply(a, n) !== 0;
      answers += isOpen ? 0 : 1;
    }
    return Math.floor(answers / 2) + 1;
  }

  /** Behind a majority that has confirmed: who misses it is filled again, and counts from the next round on. */
  #doBehind(a: number): void {
    const board = this.#board;
    this.#refill(a);
    for (let n = 0; n < board.nodes; n += 1) {
      if (board.joins(a, n) > 0) {
        this.join(a, n, board.joins(a, n));
        board.setJoins(a, n, 0);
      }
    }
  }

  #refill(a: number): void {
    const board = this.#board;
    for (let n = 0; n < board.nodes; n += 1) {
      if (board.has(a, n, flags.wantsRefill)) {
        board.clear(a, n, flags.wantsRefill);
        board.raise(a, n, flags.refill);
      }
    }
  }

  /** The node has it, as an acquire or this round has shown: it counts from the next round on. */
  join(a: number, n: number, number: number): void {
    const board = this.#board;
    if (this.#settings.mutant === "refill-counts-at-once" && board.round(a) === rounds.asking) {
      board.setMember(a, n, number);
      board.clear(a, n, flags.isWithout);
      board.raise(a, n, flags.counts);
      this.#decide(a);
    } else if (board.member(a, n) !== number) {
      board.setMember(a, n, number);
      board.clear(a, n, flags.isWithout | flags.counts);
      board.raise(a, n, flags.isNew);
      if (this.#settings.datesFrom === "joining") {
        board.setBegunSince(a, 0); // what it holds is new from here on
      }
    }
  }
}
