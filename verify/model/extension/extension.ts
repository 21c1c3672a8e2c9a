import type { Columns, Model, Step, Take } from "../explorer/model.ts";
import { promises } from "../properties.ts";
import { absent, Board, flags, others, phases } from "./board.ts";
import type { ExtensionSettings } from "./settings.ts";
import { Renewal } from "./renewal.ts";
import { renumber } from "./canonical.ts";
import { describe, tell } from "./messages.ts";

/**
 * Whose lease is looked at. The others only acquire: all that their own prolonging would change on a node is to fill it again, which
 * is an acquire, and acquires may come at any time here.
 */
const prolonging = 0;

/**
 * Prolonging a lease on a majority of nodes that have held it without a break, filling nodes again, late votes. Nothing is assumed
 * of time: any node lets go of any grant at any moment, and its client may not notice.
 */
export class Extension implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: ExtensionSettings;
  readonly #majority: number;
  readonly #board: Board;
  readonly #renewal: Renewal;
  readonly #done: Uint8Array;
  #source: Uint8Array;
  #take: Take = () => undefined;

  constructor(settings: ExtensionSettings) {
    this.#settings = settings;
    this.#majority = Math.floor(settings.nodes / 2) + 1;
    this.#board = new Board(settings);
    this.#renewal = new Renewal(this.#board, settings, this.#majority);
    this.size = this.#board.bytes.length;
    this.columns = this.#board.columns;
    this.#done = new Uint8Array(this.size);
    this.#source = new Uint8Array(this.size);
  }

  initial(): Uint8Array {
    return new Uint8Array(this.size);
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
    if (!this.#canBeBroken()) {
      return;
    }
    for (let a = 0; a < board.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < board.nodes; n += 1) {
        this.#nodeSteps(a, n);
        this.#hear(a, n);
      }
    }
    for (let n = 0; n < board.nodes; n += 1) {
      const holder = board.holder(n);
      if (holder > 0) {
        board.setHolder(n, 0);
        this.#emit("drop", holder - 1, n, 0);
      }
    }
  }

  /** What follows a state in which no promise can fall any more is not looked at: its lease is over, or nobody can overtake it. */
  #canBeBroken(): boolean {
    const board = this.#board;
    const isStartable = board.phase(board.attempts - 1) === phases.idle;
    const isExposed = isStartable || board.begunSince(prolonging) > 0 || board.isOvertaken(prolonging);
    return board.phase(prolonging) !== phases.past && isExposed;
  }

  #attemptSteps(a: number): void {
    const board = this.#board;
    const phase = board.phase(a);
    if (phase === phases.idle && this.#mayStart(a)) {
      board.setPhase(a, phases.seeking);
      if (a !== prolonging) {
        board.setBegunSince(prolonging, board.begunSince(prolonging) | (1 << a));
      }
      this.#emit("start", a, -1, 0);
    } else if (phase === phases.holding) {
      this.#renewal.begin(a);
      this.#emit("prolong", a, -1, 0);
      board.setPhase(a, phases.past);
      this.#emit("give back", a, -1, 0);
    }
  }

  /** Who began before the lease was there cannot overtake it: only those count who begin later, in the order of their names. */
  #mayStart(a: number): boolean {
    const isHeld = this.#board.phase(prolonging) === phases.holding;
    return a === prolonging || (isHeld && (a === 1 || this.#board.phase(a - 1) !== phases.idle));
  }

  /** A request reaches the node: an acquire may be late, or a refill. */
  #nodeSteps(a: number, n: number): void {
    const board = this.#board;
    if (board.phase(a) === phases.idle) {
      return;
    }
    this.#acquire("acquire", a, n);
    if (board.has(a, n, flags.refill)) {
      board.clear(a, n, flags.refill);
      this.#acquire("refill", a, n);
    }
    if (board.has(a, n, flags.extend) && board.reply(a, n) === 0) {
      const holder = board.holder(n);
      const isFree = holder === 0;
      board.clear(a, n, flags.extend);
      board.setReply(a, n, holder === a + 1 ? board.number(n) : isFree ? absent : others);
      this.#answered("extend", a, n);
    }
  }

  #acquire(rule: string, a: number, n: number): void {
    const board = this.#board;
    const holder = board.holder(n);
    const isKnown = holder === a + 1 && board.member(a, n) === board.number(n);
    if (rule === "acquire" && (isKnown || (holder > 0 && holder !== a + 1))) {
      return; // nothing comes of it
    }
    if (board.holder(n) === 0) {
      board.setHolder(n, a + 1);
      board.setNumber(n, board.number(n) + 1);
    }
    if (board.holder(n) === a + 1) {
      board.setReply(a, n, board.number(n));
      board.raise(a, n, flags.isReplyToAcquire);
    }
    this.#answered(rule, a, n);
  }

  /** What the node says is heard at once or never; where replies may be late, perhaps later. */
  #answered(rule: string, a: number, n: number): void {
    const board = this.#board;
    const reply = board.reply(a, n);
    if (!this.#settings.lateReplies) {
      this.#done.set(board.bytes);
      this.#hear(a, n);
      board.bytes.set(this.#done);
      board.setReply(a, n, 0);
      board.clear(a, n, flags.isReplyToAcquire);
    }
    this.#emit(rule, a, n, reply);
  }

  #hear(a: number, n: number): void {
    const board = this.#board;
    const reply = board.reply(a, n);
    if (reply === 0) {
      return;
    }
    const isToAcquire = board.has(a, n, flags.isReplyToAcquire);
    board.setReply(a, n, 0);
    board.clear(a, n, flags.isReplyToAcquire);
    if (board.phase(a) === phases.seeking) {
      board.setMember(a, n, a === prolonging ? reply : others); // of the others' votes no number is asked for again
      if (board.members(a) >= this.#majority) {
        board.setPhase(a, a === prolonging ? phases.holding : phases.past);
      }
    } else if (isToAcquire) {
      this.#renewal.join(a, n, reply);
    } else {
      this.#renewal.hear(a, n, reply);
    }
    this.#emit("hear", a, n, reply);
  }

  #emit(rule: string, attempt: number, node: number, detail: number): void {
    renumber(this.#board);
    this.#take(this.#board.bytes, rule, attempt, node, detail, false);
    this.#board.bytes.set(this.#source);
  }
}
