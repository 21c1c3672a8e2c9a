import type { Step } from "../model/explorer/model.ts";
import { budgets, flags, phases } from "../model/queue/fields.ts";
import { StateLayout } from "../model/queue/state-layout.ts";
import { faultFreeQueue, type QueueSettings } from "../model/queue/settings.ts";
import { QueueModel } from "../model/queue/queue.ts";
import type { NodeState, TraceEvent, TracedOperation } from "../sim/run/traced-redis.ts";
import { Frontier } from "./frontier.ts";
import { GrantNumbers } from "./fencing-trace.ts";
import { byTicket, Mentions, tooManyAttempts, tokensIn } from "./mentions.ts";

/** The waiters of a node are the bits of one byte. */
const maxAttempts = 8;
/** The budgets of the model bound its exploration, and not the protocol. This budget is never used up. */
const largeBudget = 255;
const budgetNames = [
  "duplicates",
  "expiries",
  "restarts",
  "resends",
  "cancels",
  "extensions",
  "places",
  "breaks",
  "passes",
  "refills",
] as const;

/** Checks the events of one key against the model of the queue. */
export class QueueTrace {
  /** How many steps of the model were observed. */
  steps = 0;
  readonly #layout: StateLayout;
  readonly #frontier: Frontier;
  readonly #mentions: Mentions;
  readonly #grants = new GrantNumbers();
  /** The token of each attempt, in the order of tickets. */
  #tokens: readonly string[] = [];

  constructor(nodes: number, events: readonly TraceEvent[]) {
    const settings: QueueSettings = { ...faultFreeQueue, nodes, attempts: maxAttempts };
    this.#layout = new StateLayout(settings);
    this.#frontier = new Frontier(new QueueModel(settings, false));
    this.#mentions = new Mentions(events);
  }

  /** Takes the steps of the model for an event. @returns why the model has no such steps; undefined: it has */
  accept(event: TraceEvent, index: number): string | undefined {
    if (!this.#assignAttempts(event, index)) {
      return tooManyAttempts;
    }
    switch (event.kind) {
      case "wiped":
        return this.#tryStep(event.node, "restart", () => true) ? undefined : "no restart";
      case "held":
        return this.#leaseHeld(event.fencingNumber, index);
      case "call":
        return this.#call(event, index);
    }
  }

  /** Assigns the attempts of the model to the tokens that a later event still names. */
  #assignAttempts(event: TraceEvent, index: number): boolean {
    const named = event.kind === "call" ? [...tokensIn(event.before), ...tokensIn(event.after)] : [];
    const requested = event.kind === "call" ? event.operations.map(({ token }) => token) : [];
    const isOurs = (token: string): boolean =>
      token.includes(":") && !this.#mentions.isLastMention(token, index);
    const retained = this.#tokens.filter((token) => !this.#mentions.isLastMention(token, index));
    const tokens = [...new Set([...retained, ...named, ...requested])].filter(isOurs).sort(byTicket);
    if (tokens.length > maxAttempts) {
      return false;
    }
    const origins = Array.from({ length: maxAttempts }, (_, a) => {
      const origin = this.#tokens.indexOf(tokens[a] ?? "");
      return origin < 0 ? undefined : origin;
    });
    this.#tokens = tokens;
    this.#frontier.rewrite((state) => {
      this.#layout.bytes.set(state);
      this.#layout.rearrange(origins);
      for (const budget of budgetNames) {
        this.#layout.set(budgets[budget], largeBudget);
      }
      return this.#layout.bytes.slice();
    });
    return true;
  }

  /** A caller has got a lease, so its attempt has a majority. */
  #leaseHeld(fencingNumber: number, index: number): string | undefined {
    const token = this.#grants.majorityHolder(fencingNumber);
    const a = token === undefined ? -1 : this.#tokens.indexOf(token);
    if (a < 0 || this.#frontier.filter((state) => this.#phase(state, a) === phases.holding)) {
      return undefined; // handed over in memory, or known by an extension
    }
    const sent = this.#sentRequests(["yield"], a, token ?? "", index);
    const isHeld = this.#stepAfterSent(
      sent,
      ({ rule, attempt }) => rule === "grant" && attempt === a,
      (step) => becomesHolder(step, a, -1),
      (state) => this.#phase(state, a) === phases.holding,
    );
    this.steps += 1;
    return isHeld ? undefined : `${token} cannot have a majority for its grant ${fencingNumber}`;
  }

  #call(event: TracedCall, index: number): string | undefined {
    const { node, before, after, operations } = event;
    this.#advanceTime(node, before);
    if (!this.#matchesView(node, before)) {
      return `node ${node} changed between two calls: ${this.#describeNode(node)} became ${describeView(before)}`;
    }
    this.#grants.record(node, after);
    const named = [...tokensIn(after), ...operations.map(({ token }) => token)];
    this.#dropQueueEntries(
      node,
      before.queue.filter((token) => !named.includes(token)),
    );
    for (const [attempt, operation] of operations.entries()) {
      const accepts = (state: Uint8Array): boolean =>
        attempt < operations.length - 1 || this.#showsState(state, node, after);
      if (!this.#operation(operation, event, index, accepts)) {
        return `node ${node} executed ${operation.name} of ${operation.token}: ${describeView(before)} became ${describeView(after)}, which the model does not know from ${this.#describeNode(node)}`;
      }
    }
    return undefined;
  }

  /** Takes the expiries since the previous call. */
  #advanceTime(node: number, before: NodeState): void {
    const known = this.#viewOf(node);
    if (known.holder !== undefined && before.holder === undefined) {
      this.#tryStep(node, "expire", () => true);
    }
    this.#dropQueueEntries(
      node,
      known.queue.filter((token) => !before.queue.includes(token)),
    );
  }

  /** Removes queue entries after their deadline, or without a subscriber for their notifications. */
  #dropQueueEntries(node: number, tokens: readonly string[]): void {
    for (const token of tokens) {
      const a = this.#tokens.indexOf(token);
      this.#tryStep(node, "drop entry", ({ attempt }) => attempt === a);
    }
  }

  #operation(
    operation: TracedOperation,
    { node, after }: TracedCall,
    index: number,
    accepts: (state: Uint8Array) => boolean,
  ): boolean {
    const { name, token } = operation;
    const isDropped = ({ rule, attempt, node: where }: Step): boolean =>
      rule === "drop entry" && where === node && !tokensIn(after).includes(this.#tokens[attempt] ?? "");
    if (hasNoEffect(operation) || (name !== "breakGrant" && !this.#tokens.includes(token))) {
      return (
        this.#frontier.filter(accepts) ||
        this.#frontier.step(
          ({ rule, node: where }) => rule === "serve" && where === node,
          isDropped,
          accepts,
        ) ||
        this.#frontier.step(isDropped, isDropped, accepts)
      );
    }
    this.steps += 1;
    const a = this.#tokens.indexOf(token);
    const repeated = this.#mentions.isRepeated(node, operation) ? " twice" : "";
    const rules = (rulesOf[name] ?? []).map((rule) => (rule === "break" ? rule : rule + repeated));
    const unobserved = unobservedBefore[name];
    const sent = this.#sentRequests(name === "release" ? everyRequest : [], a, token, index);
    return this.#stepAfterSent(
      sent,
      ({ rule, attempt, node: where }) =>
        rules.includes(rule) && where === node && (rule === "break" || attempt === a),
      (step) => isDropped(step) || unobserved?.(step, a, node) === true,
      accepts,
    );
  }

  /** Operations that later nodes execute were sent before their client continued. So they are in flight, and their causes were received. */
  #sentRequests(names: readonly Request[], a: number, token: string, index: number): SentRequest {
    const later = names.flatMap((name) =>
      this.#mentions.nodesWith(name, token, index).map((node) => ({ name, node })),
    );
    return {
      isUnobserved: (step) =>
        later.some(({ name, node }) => unobservedBefore[name]?.(step, a, node) === true),
      // A yield of a number that cannot be granted again is an acquire.
      isSent: (isStrict) =>
        later.every(
          ({ name, node }) =>
            this.#layout.has(a, node, flags[name]) || (!isStrict && this.#layout.has(a, node, flags.acquire)),
        ),
    };
  }

  #stepAfterSent(
    sent: SentRequest,
    ...[matches, isUnobserved, accepts]: Required<Parameters<Frontier["step"]>>
  ): boolean {
    return [true, false].some((isStrict) =>
      this.#frontier.step(
        matches,
        (step) => isUnobserved(step) || sent.isUnobserved(step),
        (state) => accepts(state) && sent.isSent(isStrict),
      ),
    );
  }

  #tryStep(node: number, rule: string, matches: (step: Step) => boolean): boolean {
    this.steps += 1;
    return this.#frontier.step(
      (step) => step.rule === rule && step.node === node && matches(step),
      () => false,
    );
  }

  #phase(state: Uint8Array, a: number): number {
    this.#layout.bytes.set(state);
    return this.#layout.phase(a);
  }

  /** The view of the node in all possible states, which differ only in the knowledge of clients. */
  #viewOf(node: number): Pick<NodeState, "holder" | "queue"> {
    return this.#read(this.#frontier.states[0] as Uint8Array, node);
  }

  #read(state: Uint8Array, node: number): Pick<NodeState, "holder" | "queue"> {
    this.#layout.bytes.set(state);
    const queue = this.#layout.queue(node);
    return {
      holder: this.#tokens[this.#layout.holder(node) - 1],
      queue: this.#tokens.filter((_, a) => (queue & (1 << a)) !== 0),
    };
  }

  #matchesView(node: number, view: NodeState): boolean {
    return this.#frontier.filter((state) => this.#showsState(state, node, view));
  }

  /** The queue of a node has the order of tickets, and so has the list of attempts. */
  #showsState(state: Uint8Array, node: number, view: NodeState): boolean {
    const { holder, queue } = this.#read(state, node);
    return holder === view.holder && queue.join() === view.queue.join();
  }

  #describeNode(node: number): string {
    return describeView(this.#viewOf(node));
  }
}

type TracedCall = Extract<TraceEvent, { kind: "call" }>;

/** The requests in flight, and a test of the states in which they are in flight. */
interface SentRequest {
  isUnobserved(step: Step): boolean;
  isSent(isStrict: boolean): boolean;
}

type Request = "yield" | "refill" | "extend";
const everyRequest: readonly Request[] = ["yield", "refill", "extend"];

function describeView({ holder, queue }: Pick<NodeState, "holder" | "queue">): string {
  return `${holder ?? "free"}${queue.length > 0 ? `, queue ${queue.join(" ")}` : ""}`;
}

/** The rules of the model that an operation may be. */
const rulesOf: Readonly<Record<string, readonly string[]>> = {
  acquire: ["acquire"],
  refill: ["refill"],
  yield: ["yield", "acquire"],
  release: ["release"],
  extend: ["extend"],
  breakGrant: ["break"],
};

/** The steps of a client, unobserved by servers, that may precede an operation of the client at a node. */
type UnobservedStep = (step: Step, a: number, node: number) => boolean;

const timeSteps = new Set(["vote expires", "quarantine ends"]);

function endsLease({ rule }: Step): boolean {
  return rule === "release lease";
}

const startsRequest: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && (rule === "start" || (rule === "resend" && where === node));
const receivesGrant: UnobservedStep = ({ rule, attempt }, a) => attempt === a && rule === "grant";

/** The client receives a notification about its vote on the node: a grant, or an inquiry for another waiter. */
const receivesMessage: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && where === node && (rule === "grant" || rule === "inquiry");

/** The attempt gets a majority, after the lease of another attempt has ended. */
const becomesHolder: UnobservedStep = (step, a, node) =>
  receivesGrant(step, a, node) || endsLease(step) || timeSteps.has(step.rule);

const unobservedBefore: Readonly<Record<string, UnobservedStep>> = {
  acquire: startsRequest,
  refill: (step, a, node) =>
    becomesHolder(step, a, node) ||
    (step.rule === "start refill" && step.attempt === a && step.node === node),
  yield: (step, a, node) =>
    receivesMessage(step, a, node) || startsRequest(step, a, node) || timeSteps.has(step.rule),
  release: (step, a) =>
    step.attempt === a && (step.rule === "start" || step.rule === "release lease" || step.rule === "cancel"),
  extend: (step, a, node) =>
    becomesHolder(step, a, node) || (step.rule === "start extension" && step.attempt === a),
};

function hasNoEffect({ name, isTry, reply }: TracedOperation): boolean {
  const status = Array.isArray(reply) ? (reply[0] as unknown) : reply;
  switch (name) {
    case "verify":
    case "inspect":
    case "raiseFence":
      return true;
    case "refill":
    case "breakGrant":
      return Number(status) !== 1;
    default:
      return (
        status === "error" || Number(status) === 4 || Number(status) === 2 || (isTry && Number(status) === 0)
      );
  }
}
