import type { Step } from "../model/explorer/model.ts";
import { Board, budgets, flags, phases } from "../model/queue/board.ts";
import { calmTurns, type TurnsSettings } from "../model/queue/settings.ts";
import { Turns } from "../model/queue/queue.ts";
import type { NodeView, TraceEvent, TracedOperation } from "../sim/run/traced-redis.ts";
import { Frontier } from "./frontier.ts";
import { GrantNumbers } from "./grant-numbers.ts";
import { holds, isWithoutEffect, rulesOf, unseenBefore } from "./queue-steps.ts";
import { byTicket, Mentions, noRoom, tokensIn } from "./mentions.ts";

/** As many as a node's byte of who waits has room for. */
const places = 8;
/** A bound of explorations, not of the protocol: there is always enough. */
const plenty = 255;
const needed = [
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

/** Plays what was seen of one key on the model of turns. */
export class TurnsTrace {
  /** How many steps of the model were seen. */
  steps = 0;
  readonly #board: Board;
  readonly #frontier: Frontier;
  readonly #mentions: Mentions;
  readonly #grants = new GrantNumbers();
  /** By attempt: the token; in the order of tickets. */
  #tokens: readonly string[] = [];

  constructor(nodes: number, events: readonly TraceEvent[]) {
    const settings: TurnsSettings = { ...calmTurns, nodes, attempts: places };
    this.#board = new Board(settings);
    this.#frontier = new Frontier(new Turns(settings, false));
    this.#mentions = new Mentions(events);
  }

  /** Takes the steps of the model that an event is. Returns why there are none; undefined: there are. */
  see(event: TraceEvent, index: number): string | undefined {
    if (!this.#name(event, index)) {
      return noRoom;
    }
    switch (event.kind) {
      case "wiped":
        return this.#isTaken(event.node, "restart", () => true) ? undefined : "no restart";
      case "held":
        return this.#held(event.number, index);
      case "call":
        return this.#call(event, index);
    }
  }

  /** The places of the board are for those that something still names. */
  #name(event: TraceEvent, index: number): boolean {
    const named = event.kind === "call" ? [...tokensIn(event.before), ...tokensIn(event.after)] : [];
    const asked = event.kind === "call" ? event.operations.map(({ token }) => token) : [];
    const isOurs = (token: string): boolean => token.includes(":") && !this.#mentions.isOver(token, index);
    const kept = this.#tokens.filter((token) => !this.#mentions.isOver(token, index));
    const tokens = [...new Set([...kept, ...named, ...asked])].filter(isOurs).sort(byTicket);
    if (tokens.length > places) {
      return false;
    }
    const origins = Array.from({ length: places }, (_, a) => {
      const origin = this.#tokens.indexOf(tokens[a] ?? "");
      return origin < 0 ? undefined : origin;
    });
    this.#tokens = tokens;
    this.#frontier.rewrite((state) => {
      this.#board.bytes.set(state);
      this.#board.rearrange(origins);
      for (const budget of needed) {
        this.#board.set(budgets[budget], plenty);
      }
      return this.#board.bytes.slice();
    });
    return true;
  }

  /** A lease: whoever has it has heard of a majority. */
  #held(number: number, index: number): string | undefined {
    const token = this.#grants.ofMost(number);
    const a = token === undefined ? -1 : this.#tokens.indexOf(token);
    if (a < 0 || this.#frontier.keep((state) => this.#phase(state, a) === phases.holding)) {
      return undefined; // handed over in memory, or known by an extension
    }
    const sent = this.#sentBefore(["yield"], a, token ?? "", index);
    const isHeld = this.#stepBehind(
      sent,
      ({ rule, attempt }) => rule === "grant" && attempt === a,
      (step) => holds(step, a, -1),
      (state) => this.#phase(state, a) === phases.holding,
    );
    this.steps += 1;
    return isHeld ? undefined : `no majority can have told ${token} of its grant ${number}`;
  }

  #call(event: TracedCall, index: number): string | undefined {
    const { node, before, after, operations } = event;
    this.#passTime(node, before);
    if (!this.#isAs(node, before)) {
      return `node ${node} changed between two calls: ${this.#told(node)} became ${toldOf(before)}`;
    }
    this.#grants.note(node, after);
    const named = [...tokensIn(after), ...operations.map(({ token }) => token)];
    this.#dropPlaces(
      node,
      before.queue.filter((token) => !named.includes(token)),
    );
    for (const [place, operation] of operations.entries()) {
      const accepts = (state: Uint8Array): boolean =>
        place < operations.length - 1 || this.#shows(state, node, after);
      if (!this.#operation(operation, event, index, accepts)) {
        return `node ${node} executed ${operation.name} of ${operation.token}: ${toldOf(before)} became ${toldOf(after)}, which the model does not know from ${this.#told(node)}`;
      }
    }
    return undefined;
  }

  /** What ended since the call before. */
  #passTime(node: number, before: NodeView): void {
    const known = this.#viewOf(node);
    if (known.holder !== undefined && before.holder === undefined) {
      this.#isTaken(node, "expire", () => true);
    }
    this.#dropPlaces(
      node,
      known.queue.filter((token) => !before.queue.includes(token)),
    );
  }

  /** Their time is over, or nobody hears what would be told to them. */
  #dropPlaces(node: number, tokens: readonly string[]): void {
    for (const token of tokens) {
      const a = this.#tokens.indexOf(token);
      this.#isTaken(node, "drop place", ({ attempt }) => attempt === a);
    }
  }

  #operation(
    operation: TracedOperation,
    { node, after }: TracedCall,
    index: number,
    accepts: (state: Uint8Array) => boolean,
  ): boolean {
    const { name, token } = operation;
    const isGone = ({ rule, attempt, node: where }: Step): boolean =>
      rule === "drop place" && where === node && !tokensIn(after).includes(this.#tokens[attempt] ?? "");
    if (isWithoutEffect(operation) || (name !== "breakGrant" && !this.#tokens.includes(token))) {
      return (
        this.#frontier.keep(accepts) ||
        this.#frontier.step(({ rule, node: where }) => rule === "serve" && where === node, isGone, accepts) ||
        this.#frontier.step(isGone, isGone, accepts)
      );
    }
    this.steps += 1;
    const a = this.#tokens.indexOf(token);
    const comesAgain = this.#mentions.comesAgain(node, operation) ? " twice" : "";
    const rules = (rulesOf[name] ?? []).map((rule) => (rule === "break" ? rule : rule + comesAgain));
    const unseen = unseenBefore[name];
    const sent = this.#sentBefore(name === "release" ? everyRequest : [], a, token, index);
    return this.#stepBehind(
      sent,
      ({ rule, attempt, node: where }) =>
        rules.includes(rule) && where === node && (rule === "break" || attempt === a),
      (step) => isGone(step) || unseen?.(step, a, node) === true,
      accepts,
    );
  }

  /** What comes later was sent before its client went on: what it was sent for has been heard, and it is under way. */
  #sentBefore(names: readonly Request[], a: number, token: string, index: number): Sent {
    const later = names.flatMap((name) =>
      this.#mentions.nodesWith(name, token, index).map((node) => ({ name, node })),
    );
    return {
      isUnseen: (step) => later.some(({ name, node }) => unseenBefore[name]?.(step, a, node) === true),
      // A yield of a number that cannot come again is an acquire.
      isSent: (isStrict) =>
        later.every(
          ({ name, node }) =>
            this.#board.has(a, node, flags[name]) || (!isStrict && this.#board.has(a, node, flags.acquire)),
        ),
    };
  }

  #stepBehind(sent: Sent, ...[wanted, isUnseen, accepts]: Required<Parameters<Frontier["step"]>>): boolean {
    return [true, false].some((isStrict) =>
      this.#frontier.step(
        wanted,
        (step) => isUnseen(step) || sent.isUnseen(step),
        (state) => accepts(state) && sent.isSent(isStrict),
      ),
    );
  }

  #isTaken(node: number, rule: string, matches: (step: Step) => boolean): boolean {
    this.steps += 1;
    return this.#frontier.step(
      (step) => step.rule === rule && step.node === node && matches(step),
      () => false,
    );
  }

  #phase(state: Uint8Array, a: number): number {
    this.#board.bytes.set(state);
    return this.#board.phase(a);
  }

  /** Of all states in question: they differ in what clients know. */
  #viewOf(node: number): Pick<NodeView, "holder" | "queue"> {
    return this.#read(this.#frontier.states[0] as Uint8Array, node);
  }

  #read(state: Uint8Array, node: number): Pick<NodeView, "holder" | "queue"> {
    this.#board.bytes.set(state);
    const queue = this.#board.queue(node);
    return {
      holder: this.#tokens[this.#board.holder(node) - 1],
      queue: this.#tokens.filter((_, a) => (queue & (1 << a)) !== 0),
    };
  }

  #isAs(node: number, view: NodeView): boolean {
    return this.#frontier.keep((state) => this.#shows(state, node, view));
  }

  /** The order of a queue is that of the tickets, in which attempts are. */
  #shows(state: Uint8Array, node: number, view: NodeView): boolean {
    const { holder, queue } = this.#read(state, node);
    return holder === view.holder && queue.join() === view.queue.join();
  }

  #told(node: number): string {
    return toldOf(this.#viewOf(node));
  }
}

type TracedCall = Extract<TraceEvent, { kind: "call" }>;

/** Of the state that the board shows. */
interface Sent {
  isUnseen(step: Step): boolean;
  isSent(isStrict: boolean): boolean;
}

type Request = "yield" | "refill" | "extend";
const everyRequest: readonly Request[] = ["yield", "refill", "extend"];

function toldOf({ holder, queue }: Pick<NodeView, "holder" | "queue">): string {
  return `${holder ?? "free"}${queue.length > 0 ? `, queue ${queue.join(" ")}` : ""}`;
}
