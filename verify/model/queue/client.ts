import { flags, notOurs, phases, type Board } from "./board.ts";
import { promiseBrokenBy } from "./property-check.ts";
import type { TurnsSettings } from "./settings.ts";

/** After so many rounds without one number an attempt is given up. */
const mostRounds = 3;

/** What a client makes of what it hears. Whatever follows from that at once is done in the same step: nobody else sees between. */
export class ClientRules {
  readonly majority: number;
  readonly #board: Board;
  readonly #settings: TurnsSettings;

  constructor(board: Board, settings: TurnsSettings) {
    this.#board = board;
    this.#settings = settings;
    this.majority = Math.floor((settings.nodes + settings.silentNodes) / 2) + 1;
  }

  start(a: number): void {
    const board = this.#board;
    board.setPhase(a, phases.waiting);
    if (this.#settings.numbers === "agreed") {
      board.setRound(a, 1);
      for (let other = 0; other < board.attempts; other += 1) {
        board.setFloor(a, Math.max(board.floor(a), board.token(other)));
      }
    }
    for (let n = 0; n < board.nodes; n += 1) {
      board.raise(a, n, flags.acquire);
    }
  }

  /** Asks again. Who gave the vote back goes on doing so until the node has another number for it. */
  ask(a: number, n: number): void {
    const givesBack = this.#board.yielded(a, n) > 0 && this.#settings.mutant !== "yield-not-repeated";
    this.#board.raise(a, n, givesBack ? flags.yield : flags.acquire);
  }

  hearGrant(a: number, n: number, number: number): void {
    const board = this.#board;
    if (!board.isSeeking(a)) {
      return;
    }
    if (board.isQuarantined(n)) {
      board.raise(a, n, flags.release); // it may have forgotten: what it has of us is given back
      return;
    }
    const isGivenBack = number <= board.yielded(a, n) && this.#settings.mutant !== "yielded-vote-counts";
    if (!isGivenBack && number >= board.vote(a, n)) {
      board.setVote(a, n, number);
      board.setReportRound(a, n, board.round(a));
    }
    this.heard(a, n);
  }

  hearInquiry(a: number, n: number, number: number): void {
    const board = this.#board;
    if (board.isSeeking(a)) {
      if (number > board.yielded(a, n)) {
        board.setInquired(a, n, Math.max(board.inquired(a, n), number));
        this.#yieldIfAsked(a, n);
      }
    } else if (this.#settings.mutant === "yield-after-election" && board.phase(a) === phases.holding) {
      board.setYielded(a, n, number);
      board.raise(a, n, flags.yield);
    }
  }

  hearAgreement(a: number, n: number, answer: number): void {
    const board = this.#board;
    board.clear(a, n, flags.isAgreeing);
    if (!board.isSeeking(a) || board.vote(a, n) === 0) {
      return;
    }
    if (answer === notOurs) {
      board.setVote(a, n, 0);
      this.ask(a, n);
    } else if (answer >= board.vote(a, n)) {
      board.setVote(a, n, answer);
      board.setReportRound(a, n, board.round(a));
    }
    this.heard(a, n);
  }

  /** A vote came or went. */
  heard(a: number, n: number): void {
    const board = this.#board;
    if (this.#isElected(a)) {
      if (this.#settings.numbers === "agreed") {
        this.#settle(a, n);
      } else if (board.phase(a) === phases.waiting) {
        this.win(a, 0);
      }
    } else if (board.isSeeking(a)) {
      board.setPhase(a, phases.waiting);
      for (let each = 0; each < board.nodes; each += 1) {
        this.#yieldIfAsked(a, each);
      }
    }
  }

  win(a: number, token: number): void {
    const board = this.#board;
    board.broken ||= promiseBrokenBy(board, a, token);
    board.setPhase(a, phases.holding);
    board.setToken(a, token);
  }

  /** Of a vote that is over by the client's own clock. Who holds and has no majority left has lost the lock. */
  loseVote(a: number, n: number): void {
    const board = this.#board;
    board.setVote(a, n, 0);
    if (board.phase(a) === phases.holding) {
      if (board.votes(a) < this.majority) {
        this.end(a);
      }
    } else {
      this.heard(a, n);
    }
  }

  /** Release, cancel, or loss: told to all nodes, whoever's votes they are. */
  end(a: number): void {
    const board = this.#board;
    const wasSeeking = board.isSeeking(a);
    board.setPhase(a, phases.ended);
    for (let n = 0; n < board.nodes; n += 1) {
      if (!wasSeeking || this.#settings.mutant !== "no-release-of-losers") {
        board.raise(a, n, flags.release);
      }
    }
  }

  #isElected(a: number): boolean {
    if (this.#settings.mutant !== "majority-of-answers") {
      return this.#board.votes(a) >= this.majority;
    }
    let voters = 0;
    for (let n = 0; n < this.#board.nodes; n += 1) {
      voters += this.#board.isQuarantined(n) ? 0 : 1;
    }
    return this.#board.votes(a) >= Math.floor(voters / 2) + 1;
  }

  #yieldIfAsked(a: number, n: number): void {
    const board = this.#board;
    const vote = board.vote(a, n);
    const inquired = board.inquired(a, n);
    if (vote === 0 || inquired < vote || this.#isElected(a) || this.#settings.mutant === "no-yield") {
      return;
    }
    if (board.has(a, n, flags.yield)) {
      board.raise(a, n, flags.acquire); // an older one is under way: its number is gone, so it comes to an acquire
    }
    board.setYielded(a, n, inquired);
    board.setVote(a, n, 0);
    board.raise(a, n, flags.yield);
  }

  /** The agreement rule: the token is a number that a majority reported in the same round. */
  #settle(a: number, heard: number): void {
    const board = this.#board;
    const agreed = this.#agreedNumber(a);
    if (agreed >= Math.max(1, board.proposed(a))) {
      this.win(a, agreed);
      return;
    }
    if (this.#someAre(a, flags.isAgreeing)) {
      if (board.vote(a, heard) !== board.proposed(a)) {
        this.#askToAgree(a, heard);
      }
    } else if (board.round(a) < mostRounds) {
      this.#nextRound(a);
    } else {
      this.end(a); // and begins anew with a fresh token, which is another attempt
    }
  }

  #nextRound(a: number): void {
    const board = this.#board;
    let largest = 0;
    for (let n = 0; n < board.nodes; n += 1) {
      largest = Math.max(largest, board.vote(a, n));
      board.clear(a, n, flags.wasAsked);
    }
    board.setRound(a, board.round(a) + 1);
    board.setProposed(a, largest);
    for (let n = 0; n < board.nodes; n += 1) {
      this.#askToAgree(a, n);
    }
  }

  #askToAgree(a: number, n: number): void {
    const board = this.#board;
    if (board.vote(a, n) > 0 && !board.has(a, n, flags.wasAsked)) {
      board.raise(a, n, flags.agree | flags.isAgreeing | flags.wasAsked);
    }
  }

  #someAre(a: number, flag: number): boolean {
    for (let n = 0; n < this.#board.nodes; n += 1) {
      if (this.#board.vote(a, n) > 0 && this.#board.has(a, n, flag)) {
        return true;
      }
    }
    return false;
  }

  /** 0: none. */
  #agreedNumber(a: number): number {
    const board = this.#board;
    let largest = 0;
    for (let n = 0; n < board.nodes; n += 1) {
      const number = board.vote(a, n);
      let same = 0;
      for (let other = 0; other < board.nodes; other += 1) {
        const isSame =
          board.vote(a, other) === number && board.reportRound(a, other) === board.reportRound(a, n);
        same += isSame ? 1 : 0;
      }
      if (number > 0 && same >= this.majority) {
        return number;
      }
      largest = Math.max(largest, number);
    }
    return this.#settings.mutant === "one-round-without-agreement" ? largest : 0;
  }
}
