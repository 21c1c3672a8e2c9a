import type { Columns, Model, Step, VisitStep } from "../explorer/model.ts";
import { invariants } from "../properties.ts";
import { absent, StateLayout, flags, others, phases } from "./state-layout.ts";
import type { ExtensionSettings } from "./settings.ts";
import { Renewal } from "./renewal.ts";
import { renumber } from "./canonical.ts";
import { describe, describeStep } from "./messages.ts";

/**
 * The attempt whose lease is checked. The other attempts only acquire. Their extensions could only refill a node. A refill is an acquire, and
 * acquires may come at any time.
 */
const extending = 0;

/**
 * Extensions of a lease on a majority of nodes that held it without a break, refills, and late votes. The model assumes nothing about time: a
 * node may drop a grant at any moment, and the client may not notice.
 */
export class ExtensionModel implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: ExtensionSettings;
  readonly #majority: number;
  readonly #layout: StateLayout;
  readonly #renewal: Renewal;
  readonly #done: Uint8Array;
  #source: Uint8Array;
  #take: VisitStep = () => undefined;

  constructor(settings: ExtensionSettings) {
    this.#settings = settings;
    this.#majority = Math.floor(settings.nodes / 2) + 1;
    this.#layout = new StateLayout(settings);
    this.#renewal = new Renewal(this.#layout, settings, this.#majority);
    this.size = this.#layout.bytes.length;
    this.columns = this.#layout.columns;
    this.#done = new Uint8Array(this.size);
    this.#source = new Uint8Array(this.size);
  }

  initial(): Uint8Array {
    return new Uint8Array(this.size);
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
    if (!this.#canBeBroken()) {
      return;
    }
    for (let a = 0; a < layout.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < layout.nodes; n += 1) {
        this.#nodeSteps(a, n);
        this.#receive(a, n);
      }
    }
    for (let n = 0; n < layout.nodes; n += 1) {
      const holder = layout.holder(n);
      if (holder > 0) {
        layout.setHolder(n, 0);
        this.#emit("drop", holder - 1, n, 0);
      }
    }
  }

  /**
   * Whether the invariant can still be violated. Successors are not visited after the end of the lease, or if no other attempt can overtake
   * it.
   */
  #canBeBroken(): boolean {
    const layout = this.#layout;
    const isStartable = layout.phase(layout.attempts - 1) === phases.idle;
    const isExposed = isStartable || layout.begunSince(extending) > 0 || layout.isOvertaken(extending);
    return layout.phase(extending) !== phases.past && isExposed;
  }

  #attemptSteps(a: number): void {
    const layout = this.#layout;
    const phase = layout.phase(a);
    if (phase === phases.idle && this.#mayStart(a)) {
      layout.setPhase(a, phases.seeking);
      if (a !== extending) {
        layout.setBegunSince(extending, layout.begunSince(extending) | (1 << a));
      }
      this.#emit("start", a, -1, 0);
    } else if (phase === phases.holding) {
      this.#renewal.begin(a);
      this.#emit("start extension", a, -1, 0);
      layout.setPhase(a, phases.past);
      this.#emit("release lease", a, -1, 0);
    }
  }

  /** An attempt that began before the lease cannot overtake it. So only later attempts count, in the order of their names. */
  #mayStart(a: number): boolean {
    const isHeld = this.#layout.phase(extending) === phases.holding;
    return a === extending || (isHeld && (a === 1 || this.#layout.phase(a - 1) !== phases.idle));
  }

  /** A request reaches the node: an acquire, which may be late, or a refill. */
  #nodeSteps(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.phase(a) === phases.idle) {
      return;
    }
    this.#acquire("acquire", a, n);
    if (layout.has(a, n, flags.refill)) {
      layout.clear(a, n, flags.refill);
      this.#acquire("refill", a, n);
    }
    if (layout.has(a, n, flags.extend) && layout.reply(a, n) === 0) {
      const holder = layout.holder(n);
      const isFree = holder === 0;
      layout.clear(a, n, flags.extend);
      layout.setReply(a, n, holder === a + 1 ? layout.fence(n) : isFree ? absent : others);
      this.#reply("extend", a, n);
    }
  }

  #acquire(rule: string, a: number, n: number): void {
    const layout = this.#layout;
    const holder = layout.holder(n);
    const isKnown = holder === a + 1 && layout.member(a, n) === layout.fence(n);
    if (rule === "acquire" && (isKnown || (holder > 0 && holder !== a + 1))) {
      return; // without effect
    }
    if (layout.holder(n) === 0) {
      layout.setHolder(n, a + 1);
      layout.setFence(n, layout.fence(n) + 1);
    }
    if (layout.holder(n) === a + 1) {
      layout.setReply(a, n, layout.fence(n));
      layout.raise(a, n, flags.isReplyToAcquire);
    }
    this.#reply(rule, a, n);
  }

  /** The reply of the node arrives at once or never. If replies may be late, it may also arrive later. */
  #reply(rule: string, a: number, n: number): void {
    const layout = this.#layout;
    const reply = layout.reply(a, n);
    if (!this.#settings.lateReplies) {
      this.#done.set(layout.bytes);
      this.#receive(a, n);
      layout.bytes.set(this.#done);
      layout.setReply(a, n, 0);
      layout.clear(a, n, flags.isReplyToAcquire);
    }
    this.#emit(rule, a, n, reply);
  }

  #receive(a: number, n: number): void {
    const layout = this.#layout;
    const reply = layout.reply(a, n);
    if (reply === 0) {
      return;
    }
    const isToAcquire = layout.has(a, n, flags.isReplyToAcquire);
    layout.setReply(a, n, 0);
    layout.clear(a, n, flags.isReplyToAcquire);
    if (layout.phase(a) === phases.seeking) {
      layout.setMember(a, n, a === extending ? reply : others); // no request repeats the number of another attempt's vote
      if (layout.members(a) >= this.#majority) {
        layout.setPhase(a, a === extending ? phases.holding : phases.past);
      }
    } else if (isToAcquire) {
      this.#renewal.join(a, n, reply);
    } else {
      this.#renewal.receive(a, n, reply);
    }
    this.#emit("receive", a, n, reply);
  }

  #emit(rule: string, attempt: number, node: number, detail: number): void {
    renumber(this.#layout);
    this.#take(this.#layout.bytes, rule, attempt, node, detail, false);
    this.#layout.bytes.set(this.#source);
  }
}
