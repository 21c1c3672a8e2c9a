import type { Step } from "../model/explorer/model.ts";
import { Board, phases } from "../model/fencing/board.ts";
import { Fencing } from "../model/fencing/fencing.ts";
import { plainFencing, type FencingSettings } from "../model/fencing/settings.ts";
import type { TraceEvent, TracedOperation } from "../sim/run/traced-redis.ts";
import { Frontier } from "./frontier.ts";
import { GrantNumbers } from "./grant-numbers.ts";
import { Mentions, noRoom } from "./mentions.ts";

const places = 12;
/** A bound of explorations, not of the protocol: there is always enough. */
const plenty = 255;

type TracedCall = Extract<TraceEvent, { kind: "call" }>;

/** Plays what was seen of one key on the model of fencing numbers: without any assumption about time. */
export class FencingTrace {
  /** How many steps of the model were seen. */
  steps = 0;
  readonly #settings: FencingSettings;
  readonly #board: Board;
  readonly #frontier: Frontier;
  readonly #mentions: Mentions;
  readonly #grants = new GrantNumbers();
  /** By attempt: the token. */
  #tokens: readonly string[] = [];
  /** By what the model has instead of it: the number, rising. */
  #numbers: readonly number[] = [0];
  #isOver = false;

  constructor(nodes: number, events: readonly TraceEvent[]) {
    this.#settings = { ...plainFencing, nodes, attempts: places, lateReplies: true };
    this.#board = new Board(this.#settings);
    this.#frontier = new Frontier(new Fencing(this.#settings));
    this.#mentions = new Mentions(events);
  }

  /** Takes the steps of the model that an event is. Returns why there are none; undefined: there are. */
  see(event: TraceEvent, index: number): string | undefined {
    this.#isOver ||= event.kind === "wiped"; // a request begins anew in the model when the guard ends, and goes on in the library
    if (this.#isOver || event.kind === "wiped") {
      return undefined;
    }
    return event.kind === "held" ? this.#held(event.number) : this.#call(event, index);
  }

  #held(number: number): string | undefined {
    const token = this.#grants.ofMost(number);
    const a = token === undefined ? -1 : this.#tokens.indexOf(token);
    if (a < 0 || this.#frontier.keep((state) => this.#read(state).phase(a) === phases.past)) {
      return undefined; // handed over in memory
    }
    const [told] = this.#inModel(number);
    const isHeld = this.#step(
      ({ rule, attempt }) => rule === "hear" && attempt === a,
      (step) => isKnowledge(step, a),
      (board) => board.token(a) === told,
    );
    return isHeld ? undefined : `no majority can have agreed with ${token} on ${number}`;
  }

  #call({ node, before, after, operations }: TracedCall, index: number): string | undefined {
    this.#grants.note(node, after);
    const isFilled = operations.some(
      ({ name, token, answer }) => name === "refill" && statusOf(answer) === 1 && token === after.holder,
    );
    const agrees = operations.some(({ name, answer }) => name === "agree" && statusOf(answer) === 1);
    const isOther = after.holder !== before.holder || (after.number !== before.number && !agrees);
    const known = this.#tokens[this.#read(this.#frontier.states[0] as Uint8Array).holder(node) - 1];
    if (known !== undefined && (known !== before.holder || isOther)) {
      this.#step(
        ({ rule, node: where }) => rule === "drop" && where === node,
        () => false,
      );
    }
    if (isOther && after.holder?.includes(":") && !isFilled) {
      return this.#granted(after.holder, node, after.number, index);
    }
    for (const operation of operations) {
      const failure = this.#told(operation, node, after.number, before.number);
      if (failure !== undefined) {
        return failure;
      }
    }
    return undefined;
  }

  #granted(token: string, node: number, number: number, index: number): string | undefined {
    const a = this.#placeOf(token, index);
    if (a === undefined) {
      return noRoom;
    }
    const [given] = this.#inModel(number);
    const isGiven = this.#step(
      ({ rule, attempt, node: where }) => rule === "acquire" && attempt === a && where === node,
      ({ rule, attempt }) => rule === "start" && attempt === a,
      (board) => board.number(node) === given,
    );
    return isGiven ? undefined : `node ${node} cannot give ${token} the number ${number}`;
  }

  /** What is told of a grant that there is: again, or as a number that all shall have. */
  #told(
    { name, token, answer, number: asked }: TracedOperation,
    node: number,
    after: number,
    before: number,
  ): string | undefined {
    const a = this.#tokens.indexOf(token);
    if (a < 0 || statusOf(answer) !== 1 || (name !== "agree" && name !== "acquire")) {
      return undefined;
    }
    const isAgreed = name === "agree";
    const [number, proposed] = this.#inModel(after, isAgreed ? asked : 0);
    const isRaised = isAgreed && after !== before;
    const rule = isAgreed ? "agree" : "acquire again";
    const step = [
      (one: Step): boolean => one.rule === rule && one.attempt === a && one.node === node,
      (one: Step): boolean =>
        isAgreed ? isKnowledge(one, a) : isKnowledge(one, a) && one.rule === "hear" && one.node === node,
      (state: Uint8Array): boolean => {
        const board = this.#read(state);
        const known = [0, board.proposed(a), isRaised ? board.proposedBefore(a) : 0];
        return board.number(node) === number && known.includes(proposed);
      },
    ] as const;
    this.steps += 1;
    if (!isRaised) {
      this.#frontier.mayStep(...step); // what it says may be under way already
      return undefined;
    }
    return this.#frontier.step(...step) ? undefined : `node ${node} cannot agree with ${token} on ${after}`;
  }

  #placeOf(token: string, index: number): number | undefined {
    if (!this.#tokens.includes(token)) {
      const kept = this.#tokens.filter((one) => !this.#mentions.isOver(one, index));
      const tokens = [...kept, token];
      if (tokens.length > places) {
        return undefined;
      }
      const origins = Array.from({ length: places }, (_, a) => {
        const origin = this.#tokens.indexOf(tokens[a] ?? "");
        return origin < 0 ? undefined : origin;
      });
      this.#rewrite((board) => {
        board.rearrange(origins);
        board.extraEffects = plenty;
      });
      this.#tokens = tokens;
    }
    return this.#tokens.indexOf(token);
  }

  /** What stands for numbers: their places among all that the model has now. */
  #inModel(...seen: readonly number[]): readonly [number, number] {
    const used = new Set([0]);
    for (const state of this.#frontier.states) {
      this.#read(state).renumber((one) => {
        used.add(one);
        return one;
      });
    }
    const before = this.#numbers;
    const numbers = [...new Set([...seen, ...[...used].map((one) => before[one] as number)])].sort(
      (one, other) => one - other,
    );
    this.#rewrite((board) => {
      board.renumber((one) => numbers.indexOf(before[one] as number));
      board.extraEffects = plenty;
    });
    this.#numbers = numbers;
    this.#frontier.model = new Fencing({ ...this.#settings, candidates: numbers.length });
    const [one = 0, other = 0] = seen.map((number) => numbers.indexOf(number));
    return [one, other];
  }

  #step(
    wanted: (step: Step) => boolean,
    unseen: (step: Step) => boolean,
    accepts?: (board: Board) => boolean,
  ): boolean {
    this.steps += 1;
    return this.#frontier.step(wanted, unseen, accepts && ((state) => accepts(this.#read(state))));
  }

  #read(state: Uint8Array): Board {
    this.#board.bytes.set(state);
    return this.#board;
  }

  #rewrite(change: (board: Board) => void): void {
    this.#frontier.rewrite((state) => {
      change(this.#read(state));
      return this.#board.bytes.slice();
    });
  }
}

/** What a client hears, and makes of it. */
function isKnowledge({ rule, attempt }: Step, a: number): boolean {
  return attempt === a && (rule === "hear" || rule === "propose");
}

function statusOf(answer: unknown): number {
  const first: unknown = Array.isArray(answer) ? answer[0] : answer;
  return Array.isArray(answer) ? Number(first) : Number(first) > 0 ? 1 : 0;
}
