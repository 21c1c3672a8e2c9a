import type { Step } from "../model/explorer/model.ts";
import { StateLayout, phases } from "../model/fencing/state-layout.ts";
import { FencingModel } from "../model/fencing/fencing.ts";
import { defaultFencing, type FencingSettings } from "../model/fencing/settings.ts";
import type { TraceEvent, TracedOperation, NodeState } from "../sim/run/traced-redis.ts";
import { Frontier } from "./frontier.ts";
import { Mentions, tooManyAttempts } from "./mentions.ts";

const maxAttempts = 12;
/** The budgets of the model bound its exploration, and not the protocol. This budget is never used up. */
const largeBudget = 255;

type TracedCall = Extract<TraceEvent, { kind: "call" }>;

/** Checks the events of one key against the model of fencing numbers, without any assumption about time. */
export class FencingTrace {
  /** How many steps of the model were observed. */
  steps = 0;
  readonly #settings: FencingSettings;
  readonly #layout: StateLayout;
  readonly #frontier: Frontier;
  readonly #mentions: Mentions;
  readonly #grants = new GrantNumbers();
  /** The token of each attempt. */
  #tokens: readonly string[] = [];
  /** The number for each number of the model, rising. */
  #numbers: readonly number[] = [0];
  #isEnded = false;

  constructor(nodes: number, events: readonly TraceEvent[]) {
    this.#settings = { ...defaultFencing, nodes, attempts: maxAttempts, lateReplies: true };
    this.#layout = new StateLayout(this.#settings);
    this.#frontier = new Frontier(new FencingModel(this.#settings));
    this.#mentions = new Mentions(events);
  }

  /** Takes the steps of the model for an event. @returns why the model has no such steps; undefined: it has */
  accept(event: TraceEvent, index: number): string | undefined {
    this.#isEnded ||= event.kind === "wiped"; // after a restart guard a request starts anew in the model, but continues in the library
    if (this.#isEnded || event.kind === "wiped") {
      return undefined;
    }
    return event.kind === "held" ? this.#leaseHeld(event.fencingNumber) : this.#call(event, index);
  }

  #leaseHeld(fencingNumber: number): string | undefined {
    const token = this.#grants.majorityHolder(fencingNumber);
    const a = token === undefined ? -1 : this.#tokens.indexOf(token);
    if (a < 0 || this.#frontier.filter((state) => this.#read(state).phase(a) === phases.past)) {
      return undefined; // handed over in memory
    }
    const [modelNumber] = this.#toModelNumber(fencingNumber);
    const isHeld = this.#step(
      ({ rule, attempt }) => rule === "receive" && attempt === a,
      (step) => isClientStep(step, a),
      (layout) => layout.token(a) === modelNumber,
    );
    return isHeld ? undefined : `no majority can have agreed with ${token} on ${fencingNumber}`;
  }

  #call({ node, before, after, operations }: TracedCall, index: number): string | undefined {
    this.#grants.record(node, after);
    const isFilled = operations.some(
      ({ name, token, reply }) => name === "refill" && statusOf(reply) === 1 && token === after.holder,
    );
    const agrees = operations.some(({ name, reply }) => name === "raiseFence" && statusOf(reply) === 1);
    const isOther =
      after.holder !== before.holder || (after.fencingNumber !== before.fencingNumber && !agrees);
    const known = this.#tokens[this.#read(this.#frontier.states[0] as Uint8Array).holder(node) - 1];
    if (known !== undefined && (known !== before.holder || isOther)) {
      this.#step(
        ({ rule, node: where }) => rule === "drop" && where === node,
        () => false,
      );
    }
    if (isOther && after.holder?.includes(":") && !isFilled) {
      return this.#granted(after.holder, node, after.fencingNumber, index);
    }
    for (const operation of operations) {
      const failure = this.#assignReply(operation, node, after.fencingNumber, before.fencingNumber);
      if (failure !== undefined) {
        return failure;
      }
    }
    return undefined;
  }

  #granted(token: string, node: number, fencingNumber: number, index: number): string | undefined {
    const a = this.#indexOf(token, index);
    if (a === undefined) {
      return tooManyAttempts;
    }
    const [modelNumber] = this.#toModelNumber(fencingNumber);
    const isGranted = this.#step(
      ({ rule, attempt, node: where }) => rule === "acquire" && attempt === a && where === node,
      ({ rule, attempt }) => rule === "start" && attempt === a,
      (layout) => layout.fence(node) === modelNumber,
    );
    return isGranted ? undefined : `node ${node} cannot grant ${token} with the number ${fencingNumber}`;
  }

  /** Takes a reply about an existing grant: to a repeated acquire, or to a raise of the number on all nodes. */
  #assignReply(
    { name, token, reply, fencingNumber: requested }: TracedOperation,
    node: number,
    after: number,
    before: number,
  ): string | undefined {
    const a = this.#tokens.indexOf(token);
    if (a < 0 || statusOf(reply) !== 1 || (name !== "raiseFence" && name !== "acquire")) {
      return undefined;
    }
    const isAgreed = name === "raiseFence";
    const [number, proposed] = this.#toModelNumber(after, isAgreed ? requested : 0);
    const isRaised = isAgreed && after !== before;
    const rule = isAgreed ? "agree" : "acquire again";
    const step = [
      (one: Step): boolean => one.rule === rule && one.attempt === a && one.node === node,
      (one: Step): boolean =>
        isAgreed ? isClientStep(one, a) : isClientStep(one, a) && one.rule === "receive" && one.node === node,
      (state: Uint8Array): boolean => {
        const layout = this.#read(state);
        const known = [0, layout.proposed(a), isRaised ? layout.proposedBefore(a) : 0];
        return layout.fence(node) === number && known.includes(proposed);
      },
    ] as const;
    this.steps += 1;
    if (!isRaised) {
      this.#frontier.mayStep(...step); // an earlier reply may already have reported the same grant
      return undefined;
    }
    return this.#frontier.step(...step) ? undefined : `node ${node} cannot agree with ${token} on ${after}`;
  }

  #indexOf(token: string, index: number): number | undefined {
    if (!this.#tokens.includes(token)) {
      const retained = this.#tokens.filter((one) => !this.#mentions.isLastMention(one, index));
      const tokens = [...retained, token];
      if (tokens.length > maxAttempts) {
        return undefined;
      }
      const origins = Array.from({ length: maxAttempts }, (_, a) => {
        const origin = this.#tokens.indexOf(tokens[a] ?? "");
        return origin < 0 ? undefined : origin;
      });
      this.#rewrite((layout) => {
        layout.rearrange(origins);
        layout.extraEffects = largeBudget;
      });
      this.#tokens = tokens;
    }
    return this.#tokens.indexOf(token);
  }

  /** The model's numbers for real numbers: their ranks among all numbers that the model has now. */
  #toModelNumber(...observed: readonly number[]): readonly [number, number] {
    const used = new Set([0]);
    for (const state of this.#frontier.states) {
      this.#read(state).renumber((one) => {
        used.add(one);
        return one;
      });
    }
    const known = this.#numbers;
    const numbers = [...new Set([...observed, ...[...used].map((one) => known[one] as number)])].sort(
      (one, other) => one - other,
    );
    this.#rewrite((layout) => {
      layout.renumber((one) => numbers.indexOf(known[one] as number));
      layout.extraEffects = largeBudget;
    });
    this.#numbers = numbers;
    this.#frontier.model = new FencingModel({ ...this.#settings, proposals: numbers.length });
    const [one = 0, other = 0] = observed.map((fencingNumber) => numbers.indexOf(fencingNumber));
    return [one, other];
  }

  #step(
    matches: (step: Step) => boolean,
    unobserved: (step: Step) => boolean,
    accepts?: (layout: StateLayout) => boolean,
  ): boolean {
    this.steps += 1;
    return this.#frontier.step(matches, unobserved, accepts && ((state) => accepts(this.#read(state))));
  }

  #read(state: Uint8Array): StateLayout {
    this.#layout.bytes.set(state);
    return this.#layout;
  }

  #rewrite(change: (layout: StateLayout) => void): void {
    this.#frontier.rewrite((state) => {
      change(this.#read(state));
      return this.#layout.bytes.slice();
    });
  }
}

/** A step in which a client receives a reply, or proposes a number after that reply. */
function isClientStep({ rule, attempt }: Step, a: number): boolean {
  return attempt === a && (rule === "receive" || rule === "propose");
}

function statusOf(reply: unknown): number {
  const first: unknown = Array.isArray(reply) ? reply[0] : reply;
  return Array.isArray(reply) ? Number(first) : Number(first) > 0 ? 1 : 0;
}

/** The tokens that had each number, and on which nodes. */
export class GrantNumbers {
  readonly #nodes = new Map<number, Map<string, Set<number>>>();

  record(node: number, { holder, fencingNumber }: NodeState): void {
    if (holder !== undefined) {
      const tokens = this.#nodes.get(fencingNumber) ?? new Map<string, Set<number>>();
      this.#nodes.set(fencingNumber, tokens);
      tokens.set(holder, (tokens.get(holder) ?? new Set()).add(node));
    }
  }

  /** The token that had the number on most nodes; undefined: the number was reserved for a hand-over. */
  majorityHolder(fencingNumber: number): string | undefined {
    const tokens = [...(this.#nodes.get(fencingNumber) ?? [])];
    return tokens.sort(([, one], [, other]) => other.size - one.size)[0]?.[0];
  }
}
