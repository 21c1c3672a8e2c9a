import { budgets, flags, phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";
import type { ClientRules } from "./client.ts";
import type { NodeRules } from "./node.ts";
import type { QueueSettings } from "./settings.ts";

type Emit = (rule: string, attempt: number, node: number, detail: number, isCalm: boolean) => void;

/** Faults, and the passage of time. */
export class Faults {
  readonly #layout: StateLayout;
  readonly #settings: QueueSettings;
  readonly #client: ClientRules;
  readonly #node: NodeRules;
  readonly #emit: Emit;

  /** @param emit reports the current state as a successor, and restores the former state */
  constructor(
    layout: StateLayout,
    settings: QueueSettings,
    client: ClientRules,
    node: NodeRules,
    emit: Emit,
  ) {
    this.#layout = layout;
    this.#settings = settings;
    this.#client = client;
    this.#node = node;
    this.#emit = emit;
  }

  messageLosses(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.get(budgets.losses) === 0) {
      return;
    }
    for (const request of [flags.acquire, flags.yield, flags.agree]) {
      if (layout.has(a, n, request)) {
        layout.spend(budgets.losses);
        layout.clear(a, n, request);
        if (request === flags.agree) {
          layout.clear(a, n, flags.isAgreeing);
        }
        this.#emit("lose", a, n, request, false);
      }
    }
    const grants = layout.grants(a, n);
    for (let rest = grants; rest !== 0; rest &= rest - 1) {
      layout.spend(budgets.losses);
      layout.setGrants(a, n, grants & ~(rest & -rest));
      this.#emit("lose a grant", a, n, 32 - Math.clz32(rest & -rest), false);
    }
    const inquiries = layout.inquiries(a, n);
    for (let rest = inquiries; rest !== 0; rest &= rest - 1) {
      layout.spend(budgets.losses);
      layout.setInquiries(a, n, inquiries & ~(rest & -rest));
      this.#emit("lose an inquiry", a, n, 32 - Math.clz32(rest & -rest), false);
    }
  }

  /**
   * Time and restarts.
   * @param isQuiet no message is in transit, so that the events that take longest must happen
   * @returns whether time alone makes something happen at the node
   */
  nodeSteps(n: number, isQuiet: boolean): boolean {
    const timePasses = this.#expiry(n, isQuiet);
    const layout = this.#layout;
    this.#interventions(n);
    if (layout.get(budgets.restarts) > 0) {
      layout.spend(budgets.restarts);
      this.#restart(n);
      this.#emit("restart", -1, n, 0, false);
    }
    if (!layout.isQuarantined(n)) {
      return timePasses;
    }
    let isTrusted = false;
    for (let a = 0; a < layout.attempts; a += 1) {
      if (layout.isActive(a) && layout.vote(a, n) > 0) {
        isTrusted = true;
        this.#client.loseVote(a, n);
        this.#emit("vote expires", a, n, 0, isQuiet);
      }
    }
    if (!isTrusted) {
      layout.setQuarantined(n, false);
      this.#emit("quarantine ends", -1, n, 0, isQuiet);
    }
    return true;
  }

  /** Actions of other clients and of operators at a node. */
  #interventions(n: number): void {
    const layout = this.#layout;
    const a = layout.holder(n) - 1;
    for (let waiter = 0; waiter < layout.attempts; waiter += 1) {
      if ((layout.queue(n) & (1 << waiter)) !== 0 && layout.spend(budgets.places)) {
        layout.dequeue(n, waiter);
        this.#emit("drop entry", waiter, n, 0, false);
      }
    }
    this.#node.proposal = 1;
    if (a < 0 && layout.queue(n) !== 0 && layout.spend(budgets.passes)) {
      this.#node.grantNextWaiter(n);
      this.#emit("serve", -1, n, 0, false);
    }
    if (a >= 0 && layout.spend(budgets.breaks)) {
      this.#node.grantNextWaiter(n);
      layout.setGrants(a, n, 0);
      if (layout.isActive(a)) {
        this.#client.loseVote(a, n); // the client receives a notification
      }
      this.#emit("break", a, n, 0, false);
    }
  }

  /** The TTL of the node's grant ends. The validity of its client has expired before, because validity counts from the request. */
  #expiry(n: number, isQuiet: boolean): boolean {
    const layout = this.#layout;
    const a = layout.holder(n) - 1;
    if (a < 0) {
      return false;
    }
    const phase = layout.phase(a);
    if (phase === phases.dead || phase === phases.frozen) {
      layout.setHolder(n, 0);
      this.#emit("expire", a, n, 0, isQuiet);
      return true;
    }
    if (phase === phases.ended) {
      // A grant of a late request with a lost reply. If no message was lost, no such grant may remain until its TTL.
      const isBound = this.#settings.losses > 0 && isQuiet;
      layout.setHolder(n, 0);
      this.#emit("expire", a, n, 0, isBound);
      return isBound;
    }
    if (layout.isActive(a) && layout.spend(budgets.expiries)) {
      layout.setHolder(n, 0);
      if (this.#settings.mutant === "validity-from-reply") {
        layout.setVote(a, n, 0);
      } else {
        layout.setGrants(a, n, 0);
      }
      this.#client.loseVote(a, n);
      this.#emit("expire", a, n, 0, false);
    }
    return false;
  }

  /** The node loses its data, and messages that it had sent are lost too. Requests in transit reach the new run. */
  #restart(n: number): void {
    const layout = this.#layout;
    layout.setHolder(n, 0);
    for (let a = 0; a < layout.attempts; a += 1) {
      layout.dequeue(n, a);
      layout.setGrants(a, n, 0);
      layout.setInquiries(a, n, 0);
      if (layout.reply(a, n) !== 0) {
        layout.setReply(a, n, 0);
        layout.clear(a, n, flags.isAgreeing);
      }
    }
    layout.setQuarantined(n, this.#settings.mutant !== "no-restart-guard");
  }
}
