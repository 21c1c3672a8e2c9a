import { budgets, flags, phases, type Board } from "./board.ts";
import type { ClientRules } from "./client.ts";
import type { NodeRules } from "./node.ts";
import type { TurnsSettings } from "./settings.ts";

type Emit = (rule: string, attempt: number, node: number, detail: number, isCalm: boolean) => void;

/** What goes wrong, and what passes with time. */
export class Faults {
  readonly #board: Board;
  readonly #settings: TurnsSettings;
  readonly #client: ClientRules;
  readonly #node: NodeRules;
  readonly #emit: Emit;

  /** @param emit tells the state that the board is in as one that can follow, and puts the board back */
  constructor(board: Board, settings: TurnsSettings, client: ClientRules, node: NodeRules, emit: Emit) {
    this.#board = board;
    this.#settings = settings;
    this.#client = client;
    this.#node = node;
    this.#emit = emit;
  }

  losses(a: number, n: number): void {
    const board = this.#board;
    if (board.get(budgets.losses) === 0) {
      return;
    }
    for (const request of [flags.acquire, flags.yield, flags.agree]) {
      if (board.has(a, n, request)) {
        board.spend(budgets.losses);
        board.clear(a, n, request);
        if (request === flags.agree) {
          board.clear(a, n, flags.isAgreeing);
        }
        this.#emit("lose", a, n, request, false);
      }
    }
    const grants = board.grants(a, n);
    for (let rest = grants; rest !== 0; rest &= rest - 1) {
      board.spend(budgets.losses);
      board.setGrants(a, n, grants & ~(rest & -rest));
      this.#emit("lose a grant", a, n, 32 - Math.clz32(rest & -rest), false);
    }
    const inquiries = board.inquiries(a, n);
    for (let rest = inquiries; rest !== 0; rest &= rest - 1) {
      board.spend(budgets.losses);
      board.setInquiries(a, n, inquiries & ~(rest & -rest));
      this.#emit("lose an inquiry", a, n, 32 - Math.clz32(rest & -rest), false);
    }
  }

  /**
   * Time and restarts.
   * @param isQuiet nothing is under way: what takes longest happens then for certain
   * @returns whether something is bound to happen here by time alone
   */
  nodeSteps(n: number, isQuiet: boolean): boolean {
    const timePasses = this.#expiry(n, isQuiet);
    const board = this.#board;
    this.#interventions(n);
    if (board.get(budgets.restarts) > 0) {
      board.spend(budgets.restarts);
      this.#restart(n);
      this.#emit("restart", -1, n, 0, false);
    }
    if (!board.isQuarantined(n)) {
      return timePasses;
    }
    let isTrusted = false;
    for (let a = 0; a < board.attempts; a += 1) {
      if (board.isActive(a) && board.vote(a, n) > 0) {
        isTrusted = true;
        this.#client.loseVote(a, n);
        this.#emit("vote expires", a, n, 0, isQuiet);
      }
    }
    if (!isTrusted) {
      board.setQuarantined(n, false);
      this.#emit("quarantine ends", -1, n, 0, isQuiet);
    }
    return true;
  }

  /** What others do at a node. */
  #interventions(n: number): void {
    const board = this.#board;
    const a = board.holder(n) - 1;
    for (let waiter = 0; waiter < board.attempts; waiter += 1) {
      if ((board.queue(n) & (1 << waiter)) !== 0 && board.spend(budgets.places)) {
        board.dequeue(n, waiter);
        this.#emit("drop place", waiter, n, 0, false);
      }
    }
    this.#node.candidate = 1;
    if (a < 0 && board.queue(n) !== 0 && board.spend(budgets.passes)) {
      this.#node.serve(n);
      this.#emit("serve", -1, n, 0, false);
    }
    if (a >= 0 && board.spend(budgets.breaks)) {
      this.#node.serve(n);
      board.setGrants(a, n, 0);
      if (board.isActive(a)) {
        this.#client.loseVote(a, n); // it is told
      }
      this.#emit("break", a, n, 0, false);
    }
  }

  /** The TTL of the node's grant ends. The validity of whoever counts on it has ended before: it counts from the request. */
  #expiry(n: number, isQuiet: boolean): boolean {
    const board = this.#board;
    const a = board.holder(n) - 1;
    if (a < 0) {
      return false;
    }
    const phase = board.phase(a);
    if (phase === phases.dead || phase === phases.frozen) {
      board.setHolder(n, 0);
      this.#emit("expire", a, n, 0, isQuiet);
      return true;
    }
    if (phase === phases.ended) {
      // Of a late request whose answer was lost; where nothing is ever lost, nothing may be left that has to be waited for.
      const isBound = this.#settings.losses > 0 && isQuiet;
      board.setHolder(n, 0);
      this.#emit("expire", a, n, 0, isBound);
      return isBound;
    }
    if (board.isActive(a) && board.spend(budgets.expiries)) {
      board.setHolder(n, 0);
      if (this.#settings.mutant === "validity-from-reply") {
        board.setVote(a, n, 0);
      } else {
        board.setGrants(a, n, 0);
      }
      this.#client.loseVote(a, n);
      this.#emit("expire", a, n, 0, false);
    }
    return false;
  }

  /** Nothing is left, and what it had sent is lost with it; requests that are under way find the new run. */
  #restart(n: number): void {
    const board = this.#board;
    board.setHolder(n, 0);
    for (let a = 0; a < board.attempts; a += 1) {
      board.dequeue(n, a);
      board.setGrants(a, n, 0);
      board.setInquiries(a, n, 0);
      if (board.answer(a, n) !== 0) {
        board.setAnswer(a, n, 0);
        board.clear(a, n, flags.isAgreeing);
      }
    }
    board.setQuarantined(n, this.#settings.mutant !== "no-restart-guard");
  }
}
