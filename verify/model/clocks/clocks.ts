import type { Columns, Model, Step, VisitStep } from "../explorer/model.ts";
import { exclusion, invariants } from "../properties.ts";
import {
  attemptBytes,
  broken,
  end,
  evictionsLeft,
  headBytes,
  holder,
  isSettable,
  lateLeft,
  lead,
  lossesLeft,
  memory,
  memoryEnd,
  nodeBytes,
  notBefore,
  now,
  setsLeft,
} from "./places.ts";
import type { ClocksMutant, ClocksSettings } from "./settings.ts";

/** All times are in units of D, the most by which two clocks that are not set differ. */
const ttlUnits = 4;
/** By how much a clock may be off when it is set. Further off it is as much out of time as at the edge. */
const maxOffset = 4;
/** Clocks show this at the beginning, so that none shows less than 1. */
const startTime = 8;

const waits: Partial<Record<ClocksMutant, number>> = { "no-wait": 0, "wait-of-1-d": 1, "wait-of-2-d": 2 };

const idle = 0;
const seeking = 1;
const holding = 2;
const ended = 3;

type Emit = (rule: string, a: number, n: number, detail: number, change: () => void) => void;

/**
 * What a node remembers of its votes, with a clock. A node ends votes by its own clock, which differs from the others' by up to D, and a
 * minority of clocks is set at any time to anything. A client that sleeps is one that does nothing while the time goes on.
 */
export class ClocksModel implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: ClocksSettings;
  readonly #nodes: number;
  readonly #majority: number;
  readonly #wait: number;
  readonly #bytes: Uint8Array;

  constructor(settings: ClocksSettings) {
    const { ahead, attempts, mutant } = settings;
    this.#settings = settings;
    this.#nodes = ahead.length;
    this.#majority = Math.floor(this.#nodes / 2) + 1;
    this.#wait = (mutant && waits[mutant]) ?? 3;
    this.columns = {
      from: headBytes + attempts * attemptBytes,
      width: nodeBytes + attempts,
      count: this.#nodes,
    };
    this.size = this.columns.from + this.columns.width * this.#nodes;
    this.#bytes = new Uint8Array(this.size);
  }

  initial(): Uint8Array {
    this.#bytes.fill(0);
    this.#bytes[setsLeft] = this.#settings.sets;
    this.#bytes[evictionsLeft] = this.#settings.evictions;
    this.#bytes[lossesLeft] = this.#settings.losses;
    this.#bytes[lateLeft] = this.#settings.late;
    this.#settings.ahead.forEach((ahead, n) => {
      this.#set(n, lead, ahead + maxOffset);
      this.#set(n, isSettable, n < this.#settings.settable ? 1 : 0);
    });
    return this.#bytes.slice();
  }

  violation(state: Uint8Array): string | undefined {
    const promise = state[broken] as number;
    return promise === 0 ? undefined : invariants[promise - 1];
  }

  expand(source: Uint8Array, visitStep: VisitStep): void {
    const emit: Emit = (rule, a, n, detail, change) => {
      this.#bytes.set(source);
      change();
      visitStep(this.#bytes, rule, a, n, detail, false);
      this.#bytes.set(source);
    };
    this.#bytes.set(source);
    const at = this.#offsetOf(now);
    if (at < this.#settings.lasts) {
      emit("tick", -1, -1, at + 1, () => (this.#bytes[now] = at + 1));
    }
    for (let a = 0; a < this.#settings.attempts; a += 1) {
      this.#attemptSteps(a, emit);
      for (let n = 0; n < this.#nodes; n += 1) {
        this.#linkSteps(a, n, emit);
      }
    }
    for (let n = 0; n < this.#nodes; n += 1) {
      this.#nodeSteps(n, emit);
    }
  }

  #attemptSteps(a: number, emit: Emit): void {
    const phase = this.#phase(a);
    const at = this.#offsetOf(now);
    if (phase === idle && (a === 0 || this.#phase(a - 1) !== idle)) {
      emit("ask", a, -1, at, () => {
        this.#setPhase(a, seeking);
        this.#bytes[headBytes + a * attemptBytes + 1] = at;
      });
    }
    if (phase === seeking && this.#isValid(a) && this.#votes(a) >= this.#majority) {
      emit("win", a, -1, at, () => {
        this.#win(a);
      });
    }
    if (phase === seeking || phase === holding) {
      emit("end", a, -1, at, () => {
        this.#end(a);
      });
    }
  }

  #linkSteps(a: number, n: number, emit: Emit): void {
    const phase = this.#phase(a);
    if (phase === ended) {
      emit("release", a, n, 0, () => {
        this.#release(a, n);
      });
    }
    if (phase === holding || phase === ended) {
      this.#lateSteps(a, n, emit);
    }
    if (phase !== seeking || this.#get(n, nodeBytes + a) !== 0) {
      return;
    }
    if (this.#offsetOf(lossesLeft) > 0) {
      emit("vote unheard", a, n, 0, () => {
        this.#bytes[lossesLeft] = this.#offsetOf(lossesLeft) - 1;
        this.#vote(a, n, false);
      });
    }
    emit("vote", a, n, this.#clock(n), () => {
      this.#vote(a, n, true);
    });
  }

  /** A request that comes when its attempt needs it no more. Behind its latest time it does nothing. */
  #lateSteps(a: number, n: number, emit: Emit): void {
    if (this.#offsetOf(lateLeft) === 0) {
      return;
    }
    emit("late vote", a, n, this.#clock(n), () => {
      this.#bytes[lateLeft] = this.#offsetOf(lateLeft) - 1;
      this.#vote(a, n, false);
    });
    if (this.#settings.mutant === "late-request-ends-memory" && this.#get(n, memory) === a + 1) {
      emit("too late", a, n, this.#clock(n), () => {
        this.#bytes[lateLeft] = this.#offsetOf(lateLeft) - 1;
        this.#set(n, memory, 0);
        this.#set(n, memoryEnd, 0);
      });
    }
  }

  #nodeSteps(n: number, emit: Emit): void {
    const canBeSet = this.#offsetOf(setsLeft) > 0 && this.#get(n, isSettable) === 1;
    for (let to = 0; canBeSet && to <= 2 * maxOffset; to += 1) {
      emit("set", -1, n, to - maxOffset, () => {
        this.#bytes[setsLeft] = this.#offsetOf(setsLeft) - 1;
        this.#set(n, lead, to);
      });
    }
    if (this.#offsetOf(evictionsLeft) > 0 && this.#get(n, holder) !== 0) {
      emit("evict", -1, n, 0, () => {
        this.#bytes[evictionsLeft] = this.#offsetOf(evictionsLeft) - 1;
        this.#set(n, holder, 0);
        this.#set(n, end, 0);
      });
    }
  }

  describeStep({ rule, attempt, node, detail }: Step): string {
    const client = attempt < 0 ? "" : `${"ABC"[attempt]} `;
    return `${client}${rule}${node < 0 ? "" : ` on node ${node + 1}`}: ${detail}`;
  }

  describe(state: Uint8Array): string {
    this.#bytes.set(state);
    const nodes = Array.from({ length: this.#nodes }, (_, n) => {
      const [by, until] = [this.#get(n, memory), this.#get(n, memoryEnd)];
      return `node ${n + 1} at ${this.#clock(n)}: ${this.#get(n, holder)} until ${this.#get(n, end)}, remembers ${by} until ${until}, not before ${this.#get(n, notBefore)}`;
    });
    const phases = Array.from({ length: this.#settings.attempts }, (_, a) => this.#phase(a));
    return `time ${this.#offsetOf(now)}; phases ${phases.join(" ")}; ${nodes.join("; ")}`;
  }

  /** What the node's script does, and what the client makes of the answer. */
  #vote(a: number, n: number, isReceived: boolean): void {
    const { mutant } = this.#settings;
    const clock = this.#clock(n);
    const isRepeat = this.#get(n, holder) === a + 1 && clock < this.#get(n, end);
    if (!isRepeat && !this.#grant(a, n, clock)) {
      return;
    }
    const remaining = isRepeat && mutant === "repeat-without-wait" ? 0 : this.#get(n, notBefore) - clock;
    if (isReceived && (this.#isUnexpired(n) || mutant === "off-clocks-vote")) {
      this.#set(n, nodeBytes + a, this.#offsetOf(now) + Math.max(0, remaining) + 1);
    }
  }

  #grant(a: number, n: number, clock: number): boolean {
    if (this.#get(n, holder) !== 0 && clock < this.#get(n, end)) {
      return false;
    }
    const grantedBy = this.#get(n, memory);
    const until = this.#get(n, memoryEnd);
    if (grantedBy !== 0 && grantedBy !== a + 1 && clock < until) {
      this.#set(n, holder, grantedBy); // it votes for nobody else
      this.#set(n, end, until);
      return false;
    }
    if (grantedBy !== 0 && grantedBy !== a + 1) {
      this.#set(n, notBefore, Math.max(this.#get(n, notBefore), until + this.#wait));
    }
    for (const [offset, endOffset] of [[holder, end] as const, [memory, memoryEnd] as const]) {
      this.#set(n, offset, a + 1);
      this.#set(n, endOffset, clock + ttlUnits);
    }
    return true;
  }

  #release(a: number, n: number): void {
    if (this.#settings.mutant === "release-lowers-wait" && this.#get(n, memory) === a + 1) {
      this.#set(n, notBefore, 0);
    }
    for (const [offset, endOffset] of [[holder, end] as const, [memory, memoryEnd] as const]) {
      if (this.#get(n, offset) === a + 1) {
        this.#set(n, offset, 0);
        this.#set(n, endOffset, 0);
      }
    }
  }

  #win(a: number): void {
    for (let other = 0; other < this.#settings.attempts; other += 1) {
      if (this.#phase(other) === holding && this.#isValid(other)) {
        this.#bytes[broken] = exclusion;
      }
    }
    this.#setPhase(a, holding);
    this.#forgetVotes(a);
  }

  #end(a: number): void {
    this.#setPhase(a, ended);
    this.#bytes[headBytes + a * attemptBytes + 1] = 0;
    this.#forgetVotes(a);
  }

  /** Validity counts from the request. */
  #isValid(a: number): boolean {
    return this.#offsetOf(now) < this.#offsetOf(headBytes + a * attemptBytes + 1) + ttlUnits;
  }

  #votes(a: number): number {
    let votes = 0;
    for (let n = 0; n < this.#nodes; n += 1) {
      const from = this.#get(n, nodeBytes + a);
      votes += from > 0 && from - 1 <= this.#offsetOf(now) ? 1 : 0;
    }
    return votes;
  }

  #forgetVotes(a: number): void {
    for (let n = 0; n < this.#nodes; n += 1) {
      this.#set(n, nodeBytes + a, 0);
    }
  }

  /** Within D of a majority, itself included. */
  #isUnexpired(n: number): boolean {
    let near = 0;
    for (let other = 0; other < this.#nodes; other += 1) {
      near += Math.abs(this.#get(other, lead) - this.#get(n, lead)) <= 1 ? 1 : 0;
    }
    return near >= this.#majority;
  }

  #clock(n: number): number {
    return startTime + this.#offsetOf(now) + this.#get(n, lead) - maxOffset;
  }

  #offsetOf(field: number): number {
    return this.#bytes[field] as number;
  }

  #get(n: number, field: number): number {
    return this.#offsetOf(this.columns.from + n * this.columns.width + field);
  }

  #set(n: number, field: number, value: number): void {
    this.#bytes[this.columns.from + n * this.columns.width + field] = value;
  }

  #phase(a: number): number {
    return this.#offsetOf(headBytes + a * attemptBytes);
  }

  #setPhase(a: number, phase: number): void {
    this.#bytes[headBytes + a * attemptBytes] = phase;
  }
}
