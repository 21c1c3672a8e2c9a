import type { Columns, Model, Step, Take } from "../explorer/model.ts";
import { promises } from "../properties.ts";
import { Board, phases } from "./board.ts";
import { agreedNumber, promiseBrokenBy } from "./rules.ts";
import type { FencingSettings } from "./settings.ts";
import { describe, tell } from "./messages.ts";

const mostRounds = 3;

/**
 * Fencing numbers alone: how one number is agreed on, whatever is late, lost or repeated. No queue: a node that is free grants to
 * whoever's request comes next. A request needs no message: once it was sent it may take effect at any later time, or never.
 */
export class Fencing implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: FencingSettings;
  readonly #majority: number;
  readonly #board: Board;
  readonly #done: Uint8Array;
  #source: Uint8Array;
  #take: Take = () => undefined;

  constructor(settings: FencingSettings) {
    this.#settings = settings;
    this.#majority = Math.floor(settings.nodes / 2) + 1;
    this.#board = new Board(settings);
    this.size = this.#board.bytes.length;
    this.columns = this.#board.columns;
    this.#done = new Uint8Array(this.size);
    this.#source = new Uint8Array(this.size);
  }

  initial(): Uint8Array {
    this.#board.bytes.fill(0);
    this.#board.extraEffects = this.#settings.extraEffects;
    this.#board.restarts = this.#settings.restarts;
    return this.#board.bytes.slice();
  }

  violation(state: Uint8Array): string | undefined {
    const broken = state[0] as number;
    return broken === 0 ? undefined : promises[broken - 1];
  }

  tell(step: Step): string {
    return tell(step);
  }

  describe(state: Uint8Array): string {
    this.#board.bytes.set(state);
    return describe(this.#board);
  }

  expand(source: Uint8Array, take: Take): void {
    this.#source = source;
    this.#take = take;
    const board = this.#board;
    board.bytes.set(source);
    for (let a = 0; a < board.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < board.nodes && board.phase(a) !== phases.idle; n += 1) {
        this.#acquire(a, n);
        this.#agree(a, n, board.proposed(a));
        this.#agree(a, n, board.proposedBefore(a));
        this.#hear(a, n);
      }
    }
    for (let n = 0; n < board.nodes; n += 1) {
      this.#nodeSteps(n);
    }
  }

  #attemptSteps(a: number): void {
    const board = this.#board;
    switch (board.phase(a)) {
      case phases.idle:
        this.#start(a);
        break;
      case phases.seeking:
        if (board.votes(a) >= this.#majority && board.round(a) < mostRounds) {
          this.#nextRound(a);
        }
        board.setPhase(a, phases.failed);
        this.#emit("give up", a, -1, 0);
        break;
      case phases.holding:
        board.setPhase(a, phases.past);
        this.#emit("give back", a, -1, 0);
        break;
      default:
    }
  }

  /** They are alike before they start: the first that did not is the next. */
  #start(a: number): void {
    const board = this.#board;
    if (a > 0 && board.phase(a - 1) === phases.idle) {
      return;
    }
    const candidate = this.#settings.candidates === "following" ? board.greatest + 1 : 0;
    board.setPhase(a, phases.seeking);
    board.setRound(a, 1);
    board.setCandidate(a, candidate);
    this.#follow(candidate);
    for (let other = 0; other < board.attempts; other += 1) {
      board.setFloor(a, Math.max(board.floor(a), board.token(other)));
    }
    this.#emit("start", a, -1, candidate);
  }

  #nextRound(a: number): void {
    const board = this.#board;
    let largest = 0;
    for (let n = 0; n < board.nodes; n += 1) {
      largest = Math.max(largest, board.vote(a, n));
    }
    board.setRound(a, board.round(a) + 1);
    board.setProposedBefore(a, board.proposed(a));
    board.setProposed(a, largest);
    this.#emit("propose", a, -1, largest);
  }

  #acquire(a: number, n: number): void {
    const board = this.#board;
    if (board.holder(n) === a + 1) {
      this.#answer("acquire again", a, n, board.number(n), false); // a repeat: the same grant, the same number
      return;
    }
    const isExtra = board.hasTakenEffect(a, n);
    if (board.holder(n) !== 0 || (isExtra && board.extraEffects === 0)) {
      return;
    }
    const { candidates, mutant } = this.#settings;
    const least = board.number(n) + (mutant === "no-increment" ? 0 : 1);
    const first = Math.max(least, board.candidate(a));
    // Who gives a lock up to another says a candidate of his own: it is another one on each node.
    const last = candidates === "following" ? first : Math.max(first, candidates);
    for (let number = first; number <= last; number += 1) {
      board.extraEffects -= isExtra ? 1 : 0;
      board.setTakenEffect(a, n);
      board.setHolder(n, a + 1);
      board.setNumber(n, number);
      this.#follow(number);
      this.#answer("acquire", a, n, number, true);
    }
  }

  /** Whenever it comes: also of a round that is over. */
  #agree(a: number, n: number, proposed: number): void {
    const board = this.#board;
    const isOurs = board.holder(n) === a + 1 || this.#settings.mutant === "agree-without-comparing";
    if (proposed === 0 || !isOurs) {
      return;
    }
    const before = board.number(n);
    const number = Math.max(before, proposed);
    board.setNumber(n, number);
    const told = this.#settings.mutant === "acknowledgement-without-value" ? proposed : number;
    this.#answer("agree", a, n, told, number > before);
  }

  /** The node has done it. What it says is heard at once or never; where replies may be late, perhaps later. */
  #answer(rule: string, a: number, n: number, number: number, hasChanged: boolean): void {
    const board = this.#board;
    const isHeard = board.phase(a) === phases.seeking && !board.isQuarantined(n);
    const isNews = board.vote(a, n) !== number || board.voteRound(a, n) !== board.round(a);
    if (isHeard && this.#settings.lateReplies) {
      // What is no news now is some in a later round.
      if (hasChanged || board.reply(a, n) !== number) {
        board.setReply(a, n, number);
        this.#emit(rule, a, n, number);
      }
    } else if (isHeard) {
      this.#done.set(board.bytes);
      if (isNews) {
        this.#hearNumber(a, n, number);
        this.#emit(`${rule}, heard`, a, n, number);
      }
      board.bytes.set(this.#done);
      if (hasChanged) {
        this.#emit(rule, a, n, number);
      }
    } else if (hasChanged) {
      this.#emit(rule, a, n, number);
    }
    board.bytes.set(this.#source);
  }

  /** A reply that is heard counts for the round in which it is heard. One that never is may be lost. */
  #hear(a: number, n: number): void {
    const board = this.#board;
    const number = board.reply(a, n);
    if (board.phase(a) !== phases.seeking || number === 0 || board.isQuarantined(n)) {
      return;
    }
    board.setReply(a, n, 0);
    this.#hearNumber(a, n, number);
    this.#emit("hear", a, n, number);
  }

  #hearNumber(a: number, n: number, number: number): void {
    const board = this.#board;
    if (number >= board.vote(a, n)) {
      board.setVote(a, n, number, board.round(a));
    }
    const agreed = agreedNumber(board, a, this.#majority, this.#settings.mutant);
    if (agreed > 0 && agreed >= board.proposed(a)) {
      this.#win(a, agreed);
    }
  }

  #win(a: number, token: number): void {
    const board = this.#board;
    board.broken = promiseBrokenBy(board, a, token, this.#settings.isTimed);
    board.setPhase(a, this.#settings.isTimed ? phases.holding : phases.past);
    board.setToken(a, token);
    board.setFloor(a, 0);
  }

  #nodeSteps(n: number): void {
    const board = this.#board;
    const a = board.holder(n) - 1;
    if (a >= 0) {
      board.setHolder(n, 0);
      if (this.#settings.isTimed) {
        this.#loseVote(a, n);
      }
      this.#emit("drop", a, n, 0);
    }
    if (board.restarts > 0) {
      board.restarts -= 1;
      board.setHolder(n, 0);
      board.setNumber(n, 0);
      board.setQuarantined(n, this.#settings.mutant !== "no-restart-guard");
      let begun = 0;
      for (let each = 0; each < board.attempts; each += 1) {
        board.setReply(each, n, 0); // heard before, or lost
        begun |= this.#isActive(each) ? 1 << each : 0;
      }
      board.setBegunBefore(n, begun);
      this.#emit("restart", -1, n, 0);
    }
    if (board.isQuarantined(n)) {
      this.#endQuarantine(n);
    }
  }

  /** It lasts longer than anything that was asked for before the restart can be valid, wherever. */
  #endQuarantine(n: number): void {
    const board = this.#board;
    for (let a = 0; a < board.attempts; a += 1) {
      if ((board.begunBefore(n) & (1 << a)) !== 0 && this.#isActive(a)) {
        board.setPhase(a, board.phase(a) === phases.holding ? phases.past : phases.failed);
      }
    }
    board.setQuarantined(n, false);
    board.setBegunBefore(n, 0);
    this.#emit("quarantine ends", -1, n, 0);
  }

  #isActive(a: number): boolean {
    const phase = this.#board.phase(a);
    return phase === phases.seeking || phase === phases.holding;
  }

  #loseVote(a: number, n: number): void {
    const board = this.#board;
    board.setReply(a, n, 0);
    board.setVote(a, n, 0, 0);
    if (board.phase(a) === phases.holding && board.votes(a) < this.#majority) {
      board.setPhase(a, phases.past);
    }
  }

  #follow(number: number): void {
    if (this.#settings.candidates === "following") {
      this.#board.greatest = Math.max(this.#board.greatest, number);
    }
  }

  #emit(rule: string, attempt: number, node: number, detail: number): void {
    this.#tidy();
    this.#take(this.#board.bytes, rule, attempt, node, detail, false);
    this.#board.bytes.set(this.#source);
  }

  /** Who does not seek any more hears nothing; of who holds only which nodes' votes counted. */
  #tidy(): void {
    const board = this.#board;
    for (let a = 0; a < board.attempts; a += 1) {
      const phase = board.phase(a);
      if (phase === phases.holding || phase === phases.past || phase === phases.failed) {
        board.setRound(a, 0);
        board.setFloor(a, 0);
        for (let n = 0; n < board.nodes; n += 1) {
          board.setReply(a, n, 0);
          board.setVote(a, n, phase === phases.holding && board.vote(a, n) > 0 ? 1 : 0, 0);
        }
      }
    }
  }
}
