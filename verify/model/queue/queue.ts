import type { Columns, Model, Step, VisitStep } from "../explorer/model.ts";
import { bitOf, budgets, flags, phases } from "./fields.ts";
import { StateLayout } from "./state-layout.ts";
import { ClientRules } from "./client.ts";
import { Faults } from "./faults.ts";
import { NodeRules } from "./node.ts";
import { invariants } from "../properties.ts";
import type { QueueSettings } from "./settings.ts";
import { Canonicalizer } from "./canonical.ts";
import { describe, describeStep } from "./messages.ts";

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
 * Queues, yielded votes, inquiries, grants by notification, and faults: the protocol from a request to the end of its lease. Messages in
 * transit may arrive at any time and in any order.
 */
export class QueueModel implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly isWaiting: ((state: Uint8Array) => boolean) | undefined;
  readonly #settings: QueueSettings;
  readonly #layout: StateLayout;
  readonly #node: NodeRules;
  readonly #client: ClientRules;
  readonly #faults: Faults;
  readonly #canonicalizer: Canonicalizer;
  #source: Uint8Array;
  #take: VisitStep = () => undefined;
  #onlyFaultFree = false;

  constructor(settings: QueueSettings, checksProgress: boolean) {
    this.#settings = settings;
    this.#layout = new StateLayout(settings);
    this.size = this.#layout.bytes.length;
    this.columns = this.#layout.columns;
    this.#source = new Uint8Array(this.size);
    this.#node = new NodeRules(this.#layout, settings);
    this.#client = new ClientRules(this.#layout, settings);
    this.#faults = new Faults(this.#layout, settings, this.#client, this.#node, (...step) => {
      this.#emit(...step);
    });
    this.#canonicalizer = new Canonicalizer(this.#layout, settings);
    this.isWaiting = checksProgress ? (state) => this.#anyAcquiring(state) : undefined;
  }

  initial(): Uint8Array {
    const layout = this.#layout;
    layout.bytes.fill(0);
    for (const [name, budgetOffset] of Object.entries(budgets)) {
      layout.set(budgetOffset, this.#settings[name as keyof typeof budgets]);
    }
    return layout.bytes.slice();
  }

  violation(state: Uint8Array): string | undefined {
    const broken = state[0] as number;
    return broken === 0 ? undefined : invariants[broken - 1];
  }

  describeStep(step: Step): string {
    return describeStep(step);
  }

  describe(state: Uint8Array): string {
    this.#layout.bytes.set(state);
    return describe(this.#layout);
  }

  expand(source: Uint8Array, visitStep: VisitStep): void {
    this.#source = source;
    this.#take = visitStep;
    const layout = this.#layout;
    layout.bytes.set(source);
    this.#onlyFaultFree = this.#nothingInTransit();
    for (let a = 0; a < layout.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < layout.nodes; n += 1) {
        this.#requestSteps(a, n);
        this.#notificationSteps(a, n);
        this.#faults.messageLosses(a, n);
      }
    }
    let timePasses = false;
    for (let n = 0; n < layout.nodes; n += 1) {
      timePasses = this.#faults.nodeSteps(n, this.#onlyFaultFree) || timePasses;
    }
    if (this.#onlyFaultFree && !timePasses) {
      this.#allRequested();
    }
  }

  /** The steps of an attempt that need no message. */
  #attemptSteps(a: number): void {
    const layout = this.#layout;
    const phase = layout.phase(a);
    if (phase === phases.idle) {
      this.#client.start(a);
      this.#emit("start", a, -1, 0, false);
    } else if (phase === phases.holding) {
      this.#client.end(a);
      this.#emit("release lease", a, -1, 0, true);
      this.#extendLease(a);
    } else if (phase === phases.settling) {
      this.#client.win(a, 0);
      this.#emit("settled", a, -1, 0, true);
    }
    if (layout.isAcquiring(a) && this.#layout.spend(budgets.cancels)) {
      this.#client.end(a);
      this.#emit("cancel", a, -1, 0, false);
    }
    if (layout.isActive(a) && layout.get(budgets.clientFaults) > 0) {
      this.#clientFault(a, "die", phases.dead);
      this.#clientFault(a, "freeze", phases.frozen);
    }
    this.#resends(a);
  }

  #extendLease(a: number): void {
    if (this.#layout.spend(budgets.extensions)) {
      for (let n = 0; n < this.#layout.nodes; n += 1) {
        this.#layout.raise(a, n, flags.extend);
      }
      this.#emit("start extension", a, -1, 0, false);
    }
    for (let n = 0; n < this.#layout.nodes && this.#layout.get(budgets.refills) > 0; n += 1) {
      this.#layout.spend(budgets.refills);
      this.#layout.raise(a, n, flags.refill);
      this.#emit("start refill", a, n, 0, false);
    }
  }

  #clientFault(a: number, rule: string, phase: number): void {
    this.#layout.spend(budgets.clientFaults);
    this.#layout.setPhase(a, phase);
    this.#emit(rule, a, -1, 0, false);
  }

  #resends(a: number): void {
    const layout = this.#layout;
    if (!layout.isAcquiring(a) || layout.get(budgets.resends) === 0) {
      return;
    }
    for (let n = 0; n < layout.nodes; n += 1) {
      if (!layout.has(a, n, flags.acquire | flags.yield) && !layout.isQuarantined(n)) {
        this.#layout.spend(budgets.resends);
        this.#client.requestVotes(a, n);
        this.#emit("resend", a, n, layout.yielded(a, n), false);
      }
    }
  }

  /** A request reaches its node, early or late. */
  #requestSteps(a: number, n: number): void {
    const layout = this.#layout;
    for (const request of requests) {
      if (layout.has(a, n, request)) {
        const rule = requestRules.get(request) as string;
        const detail = request === flags.agree ? layout.proposed(a) : layout.yielded(a, n);
        this.#execute(rule, a, n, request, detail, true);
        if (layout.get(budgets.duplicates) > 0) {
          this.#execute(rule, a, n, request, detail, false);
        }
      }
    }
  }

  /** Executes a request once for each candidate that the client may have sent. */
  #execute(rule: string, a: number, n: number, request: number, detail: number, isLast: boolean): void {
    const layout = this.#layout;
    for (let candidate = 1; candidate <= this.#settings.proposals; candidate += 1) {
      if (candidate > 1 && candidate <= layout.fence(n) + 1) {
        continue; // the same number as without this candidate
      }
      this.#node.proposal = candidate;
      this.#node.execute(a, n, request);
      if (isLast) {
        layout.clear(a, n, request);
      } else {
        this.#layout.spend(budgets.duplicates);
      }
      this.#emit(isLast ? rule : `${rule} twice`, a, n, detail, isLast);
    }
  }

  /** A message in transit reaches an attempt. */
  #notificationSteps(a: number, n: number): void {
    const layout = this.#layout;
    const grants = layout.grants(a, n);
    const inquiries = layout.inquiries(a, n);
    for (let number = 1; grants >>> (number - 1) !== 0; number += 1) {
      if ((grants & bitOf(number)) !== 0) {
        layout.setGrants(a, n, grants & ~bitOf(number));
        this.#client.receiveGrant(a, n, number);
        this.#emitReceived("grant", a, n, number, true);
      }
    }
    for (let number = 1; inquiries >>> (number - 1) !== 0; number += 1) {
      if ((inquiries & bitOf(number)) !== 0) {
        layout.setInquiries(a, n, inquiries & ~bitOf(number));
        this.#client.receiveInquiry(a, n, number);
        this.#emit("inquiry", a, n, number, true);
      }
    }
    const answer = layout.reply(a, n);
    if (answer !== 0) {
      layout.setReply(a, n, 0);
      this.#client.receiveFence(a, n, answer);
      this.#emit("agreement", a, n, answer, true);
    }
  }

  /** An attempt with a majority may need another round for its number before it holds the lock. */
  #emitReceived(rule: string, a: number, n: number, number: number, isCalm: boolean): void {
    const layout = this.#layout;
    if (this.#settings.numbers === "later" && layout.phase(a) === phases.holding) {
      const broken = layout.broken;
      layout.broken = 0;
      layout.setPhase(a, phases.settling);
      this.#emit(`${rule}, another round`, a, n, number, isCalm);
      layout.setGrants(a, n, layout.grants(a, n) & ~bitOf(number));
      this.#client.receiveGrant(a, n, number);
      layout.broken = broken;
    }
    this.#emit(rule, a, n, number, isCalm);
  }

  /** No message is in transit, and no TTL must end first, so all waiters poll, because every timer fires at some time. */
  #allRequested(): void {
    const layout = this.#layout;
    let anyRequested = false;
    for (let a = 0; a < layout.attempts; a += 1) {
      if (layout.isAcquiring(a) && this.#settings.mutant !== "waiter-without-resend") {
        anyRequested = true;
        for (let n = 0; n < layout.nodes; n += 1) {
          this.#client.requestVotes(a, n);
        }
      }
    }
    if (anyRequested) {
      this.#emit("poll", -1, -1, 0, true);
    }
  }

  #nothingInTransit(): boolean {
    const layout = this.#layout;
    for (let a = 0; a < layout.attempts; a += 1) {
      if (layout.phase(a) === phases.holding || layout.phase(a) === phases.settling) {
        return false; // the holder releases before any waiter times out
      }
      for (let n = 0; n < layout.nodes; n += 1) {
        if (layout.hasMessagesInTransit(a, n)) {
          return false;
        }
      }
    }
    return true;
  }

  #anyAcquiring(state: Uint8Array): boolean {
    this.#layout.bytes.set(state);
    for (let a = 0; a < this.#layout.attempts; a += 1) {
      if (this.#layout.isAcquiring(a)) {
        return true;
      }
    }
    return false;
  }

  #emit(rule: string, attempt: number, node: number, detail: number, isCalm: boolean): void {
    this.#canonicalizer.canonicalize();
    this.#take(this.#layout.bytes, rule, attempt, node, detail, isCalm);
    this.#layout.bytes.set(this.#source);
  }
}
