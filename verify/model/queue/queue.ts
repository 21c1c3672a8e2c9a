import type { Columns, Model, Step, Take } from "../explorer/model.ts";
import { bitOf, Board, budgets, flags, phases } from "./board.ts";
import { ClientRules } from "./client.ts";
import { Faults } from "./faults.ts";
import { NodeRules } from "./node.ts";
import { promises } from "../properties.ts";
import type { TurnsSettings } from "./settings.ts";
import { Tidying } from "./canonical.ts";
import { describe, tell } from "./messages.ts";

const requests = [flags.acquire, flags.yield, flags.release, flags.agree, flags.extend, flags.refill];
const requestRules: ReadonlyMap<number, string> = new Map([
  [flags.acquire, "acquire"],
  [flags.yield, "yield"],
  [flags.release, "release"],
  [flags.agree, "agree"],
  [flags.extend, "extend"],
  [flags.refill, "refill"],
]);

/**
 * Queues, votes that are given back, inquiries, hand-over by message, and what faults do to them: the protocol from a request to
 * the end of its lease. Everything under way may arrive at any time and in any order.
 */
export class Turns implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly isWaiting: ((state: Uint8Array) => boolean) | undefined;
  readonly #settings: TurnsSettings;
  readonly #board: Board;
  readonly #node: NodeRules;
  readonly #client: ClientRules;
  readonly #faults: Faults;
  readonly #tidying: Tidying;
  #source: Uint8Array;
  #take: Take = () => undefined;
  #isQuiet = false;

  constructor(settings: TurnsSettings, looksAtProgress: boolean) {
    this.#settings = settings;
    this.#board = new Board(settings);
    this.size = this.#board.bytes.length;
    this.columns = this.#board.columns;
    this.#source = new Uint8Array(this.size);
    this.#node = new NodeRules(this.#board, settings);
    this.#client = new ClientRules(this.#board, settings);
    this.#faults = new Faults(this.#board, settings, this.#client, this.#node, (...step) => {
      this.#emit(...step);
    });
    this.#tidying = new Tidying(this.#board, settings);
    this.isWaiting = looksAtProgress ? (state) => this.#someSeek(state) : undefined;
  }

  initial(): Uint8Array {
    const board = this.#board;
    board.bytes.fill(0);
    for (const [name, place] of Object.entries(budgets)) {
      board.set(place, this.#settings[name as keyof typeof budgets]);
    }
    return board.bytes.slice();
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
    this.#isQuiet = this.#nothingIsUnderWay();
    for (let a = 0; a < board.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < board.nodes; n += 1) {
        this.#requestSteps(a, n);
        this.#tellingSteps(a, n);
        this.#faults.losses(a, n);
      }
    }
    let timePasses = false;
    for (let n = 0; n < board.nodes; n += 1) {
      timePasses = this.#faults.nodeSteps(n, this.#isQuiet) || timePasses;
    }
    if (this.#isQuiet && !timePasses) {
      this.#everybodyAsks();
    }
  }

  /** What an attempt does by itself. */
  #attemptSteps(a: number): void {
    const board = this.#board;
    const phase = board.phase(a);
    if (phase === phases.idle) {
      this.#client.start(a);
      this.#emit("start", a, -1, 0, false);
    } else if (phase === phases.holding) {
      this.#client.end(a);
      this.#emit("give back", a, -1, 0, true);
      this.#prolong(a);
    } else if (phase === phases.settling) {
      this.#client.win(a, 0);
      this.#emit("settled", a, -1, 0, true);
    }
    if (board.isSeeking(a) && this.#board.spend(budgets.cancels)) {
      this.#client.end(a);
      this.#emit("cancel", a, -1, 0, false);
    }
    if (board.isActive(a) && board.get(budgets.clientFaults) > 0) {
      this.#clientFault(a, "die", phases.dead);
      this.#clientFault(a, "freeze", phases.frozen);
    }
    this.#resends(a);
  }

  #prolong(a: number): void {
    if (this.#board.spend(budgets.extensions)) {
      for (let n = 0; n < this.#board.nodes; n += 1) {
        this.#board.raise(a, n, flags.extend);
      }
      this.#emit("prolong", a, -1, 0, false);
    }
    for (let n = 0; n < this.#board.nodes && this.#board.get(budgets.refills) > 0; n += 1) {
      this.#board.spend(budgets.refills);
      this.#board.raise(a, n, flags.refill);
      this.#emit("fill", a, n, 0, false);
    }
  }

  #clientFault(a: number, rule: string, phase: number): void {
    this.#board.spend(budgets.clientFaults);
    this.#board.setPhase(a, phase);
    this.#emit(rule, a, -1, 0, false);
  }

  #resends(a: number): void {
    const board = this.#board;
    if (!board.isSeeking(a) || board.get(budgets.resends) === 0) {
      return;
    }
    for (let n = 0; n < board.nodes; n += 1) {
      if (!board.has(a, n, flags.acquire | flags.yield) && !board.isQuarantined(n)) {
        this.#board.spend(budgets.resends);
        this.#client.ask(a, n);
        this.#emit("ask again", a, n, board.yielded(a, n), false);
      }
    }
  }

  /** A request reaches its node, early or late. */
  #requestSteps(a: number, n: number): void {
    const board = this.#board;
    for (const request of requests) {
      if (board.has(a, n, request)) {
        const rule = requestRules.get(request) as string;
        const detail = request === flags.agree ? board.proposed(a) : board.yielded(a, n);
        this.#execute(rule, a, n, request, detail, true);
        if (board.get(budgets.duplicates) > 0) {
          this.#execute(rule, a, n, request, detail, false);
        }
      }
    }
  }

  /** Once for each candidate that the client may have sent. */
  #execute(rule: string, a: number, n: number, request: number, detail: number, isLast: boolean): void {
    const board = this.#board;
    for (let candidate = 1; candidate <= this.#settings.candidates; candidate += 1) {
      if (candidate > 1 && candidate <= board.number(n) + 1) {
        continue; // the same number as without it
      }
      this.#node.candidate = candidate;
      this.#node.execute(a, n, request);
      if (isLast) {
        board.clear(a, n, request);
      } else {
        this.#board.spend(budgets.duplicates);
      }
      this.#emit(isLast ? rule : `${rule} twice`, a, n, detail, isLast);
    }
  }

  /** What is on its way to an attempt arrives. */
  #tellingSteps(a: number, n: number): void {
    const board = this.#board;
    const grants = board.grants(a, n);
    const inquiries = board.inquiries(a, n);
    for (let number = 1; grants >>> (number - 1) !== 0; number += 1) {
      if ((grants & bitOf(number)) !== 0) {
        board.setGrants(a, n, grants & ~bitOf(number));
        this.#client.hearGrant(a, n, number);
        this.#emitHeard("grant", a, n, number, true);
      }
    }
    for (let number = 1; inquiries >>> (number - 1) !== 0; number += 1) {
      if ((inquiries & bitOf(number)) !== 0) {
        board.setInquiries(a, n, inquiries & ~bitOf(number));
        this.#client.hearInquiry(a, n, number);
        this.#emit("inquiry", a, n, number, true);
      }
    }
    const answer = board.answer(a, n);
    if (answer !== 0) {
      board.setAnswer(a, n, 0);
      this.#client.hearAgreement(a, n, answer);
      this.#emit("agreement", a, n, answer, true);
    }
  }

  /** Who is elected may need another round for its number before it holds. */
  #emitHeard(rule: string, a: number, n: number, number: number, isCalm: boolean): void {
    const board = this.#board;
    if (this.#settings.numbers === "later" && board.phase(a) === phases.holding) {
      const broken = board.broken;
      board.broken = 0;
      board.setPhase(a, phases.settling);
      this.#emit(`${rule}, another round`, a, n, number, isCalm);
      board.setGrants(a, n, board.grants(a, n) & ~bitOf(number));
      this.#client.hearGrant(a, n, number);
      board.broken = broken;
    }
    this.#emit(rule, a, n, number, isCalm);
  }

  /** All is quiet, and no time has to pass: polls are due. Everybody's, as nobody's timer waits for ever. */
  #everybodyAsks(): void {
    const board = this.#board;
    let somebodyAsks = false;
    for (let a = 0; a < board.attempts; a += 1) {
      if (board.isSeeking(a) && this.#settings.mutant !== "waiter-without-resend") {
        somebodyAsks = true;
        for (let n = 0; n < board.nodes; n += 1) {
          this.#client.ask(a, n);
        }
      }
    }
    if (somebodyAsks) {
      this.#emit("poll", -1, -1, 0, true);
    }
  }

  #nothingIsUnderWay(): boolean {
    const board = this.#board;
    for (let a = 0; a < board.attempts; a += 1) {
      if (board.phase(a) === phases.holding || board.phase(a) === phases.settling) {
        return false; // its work ends before anybody's patience does
      }
      for (let n = 0; n < board.nodes; n += 1) {
        if (board.isAnythingUnderWay(a, n)) {
          return false;
        }
      }
    }
    return true;
  }

  #someSeek(state: Uint8Array): boolean {
    this.#board.bytes.set(state);
    for (let a = 0; a < this.#board.attempts; a += 1) {
      if (this.#board.isSeeking(a)) {
        return true;
      }
    }
    return false;
  }

  #emit(rule: string, attempt: number, node: number, detail: number, isCalm: boolean): void {
    this.#tidying.tidy();
    this.#take(this.#board.bytes, rule, attempt, node, detail, isCalm);
    this.#board.bytes.set(this.#source);
  }
}
