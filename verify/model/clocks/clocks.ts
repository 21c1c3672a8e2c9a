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
  maxOffset,
  memory,
  memoryEnd,
  nodeBytes,
  notBefore,
  now,
  phases,
  setsLeft,
} from "./fields.ts";
import { StateLayout } from "./state-layout.ts";
import type { ClocksMutant, ClocksSettings } from "./settings.ts";

/** All times are in units of D, the largest difference between two clocks that are not set. */
const ttlUnits = 4;

const waits: Partial<Record<ClocksMutant, number>> = { "no-wait": 0, "wait-of-1-d": 1, "wait-of-2-d": 2 };

type Emit = (rule: string, a: number, n: number, detail: number, change: () => void) => void;

/**
 * The remembered votes of nodes, with clocks. A node expires a vote by its own clock, which differs from the other clocks by up to D. The
 * clocks of a minority may be set to any value at any time. A client that sleeps does nothing while time passes.
 */
export class ClocksModel implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: ClocksSettings;
  readonly #wait: number;
  readonly #layout: StateLayout;

  constructor(settings: ClocksSettings) {
    this.#settings = settings;
    this.#wait = (settings.mutant && waits[settings.mutant]) ?? 3;
    this.#layout = new StateLayout(settings);
    this.columns = this.#layout.columns;
    this.size = this.#layout.bytes.length;
  }

  initial(): Uint8Array {
    this.#layout.bytes.fill(0);
    this.#layout.bytes[setsLeft] = this.#settings.sets;
    this.#layout.bytes[evictionsLeft] = this.#settings.evictions;
    this.#layout.bytes[lossesLeft] = this.#settings.losses;
    this.#layout.bytes[lateLeft] = this.#settings.late;
    this.#settings.ahead.forEach((ahead, n) => {
      this.#layout.set(n, lead, ahead + maxOffset);
      this.#layout.set(n, isSettable, n < this.#settings.settable ? 1 : 0);
    });
    return this.#layout.bytes.slice();
  }

  violation(state: Uint8Array): string | undefined {
    const violated = state[broken] as number;
    return violated === 0 ? undefined : invariants[violated - 1];
  }

  expand(source: Uint8Array, visitStep: VisitStep): void {
    const emit: Emit = (rule, a, n, detail, change) => {
      this.#layout.bytes.set(source);
      change();
      visitStep(this.#layout.bytes, rule, a, n, detail, false);
      this.#layout.bytes.set(source);
    };
    this.#layout.bytes.set(source);
    const at = this.#layout.read(now);
    if (at < this.#settings.lasts) {
      emit("tick", -1, -1, at + 1, () => (this.#layout.bytes[now] = at + 1));
    }
    for (let a = 0; a < this.#settings.attempts; a += 1) {
      this.#attemptSteps(a, emit);
      for (let n = 0; n < this.#layout.nodes; n += 1) {
        this.#linkSteps(a, n, emit);
      }
    }
    for (let n = 0; n < this.#layout.nodes; n += 1) {
      this.#nodeSteps(n, emit);
    }
  }

  #attemptSteps(a: number, emit: Emit): void {
    const phase = this.#layout.phase(a);
    const at = this.#layout.read(now);
    if (phase === phases.idle && (a === 0 || this.#layout.phase(a - 1) !== phases.idle)) {
      emit("request", a, -1, at, () => {
        this.#layout.setPhase(a, phases.seeking);
        this.#layout.bytes[headBytes + a * attemptBytes + 1] = at;
      });
    }
    if (phase === phases.seeking && this.#isValid(a) && this.#layout.votes(a) >= this.#layout.majority) {
      emit("win", a, -1, at, () => {
        this.#win(a);
      });
    }
    if (phase === phases.seeking || phase === phases.holding) {
      emit("end", a, -1, at, () => {
        this.#end(a);
      });
    }
  }

  #linkSteps(a: number, n: number, emit: Emit): void {
    const phase = this.#layout.phase(a);
    if (phase === phases.ended) {
      emit("release", a, n, 0, () => {
        this.#release(a, n);
      });
    }
    if (phase === phases.holding || phase === phases.ended) {
      this.#lateSteps(a, n, emit);
    }
    if (phase !== phases.seeking || this.#layout.get(n, nodeBytes + a) !== 0) {
      return;
    }
    if (this.#layout.read(lossesLeft) > 0) {
      emit("vote, reply lost", a, n, 0, () => {
        this.#layout.bytes[lossesLeft] = this.#layout.read(lossesLeft) - 1;
        this.#vote(a, n, false);
      });
    }
    emit("vote", a, n, this.#layout.clock(n), () => {
      this.#vote(a, n, true);
    });
  }

  /** A request that its node executes after its attempt has ended. After its latest time the request has no effect. */
  #lateSteps(a: number, n: number, emit: Emit): void {
    if (this.#layout.read(lateLeft) === 0) {
      return;
    }
    emit("late vote", a, n, this.#layout.clock(n), () => {
      this.#layout.bytes[lateLeft] = this.#layout.read(lateLeft) - 1;
      this.#vote(a, n, false);
    });
    if (this.#settings.mutant === "late-request-ends-memory" && this.#layout.get(n, memory) === a + 1) {
      emit("too late", a, n, this.#layout.clock(n), () => {
        this.#layout.bytes[lateLeft] = this.#layout.read(lateLeft) - 1;
        this.#layout.set(n, memory, 0);
        this.#layout.set(n, memoryEnd, 0);
      });
    }
  }

  #nodeSteps(n: number, emit: Emit): void {
    const canBeSet = this.#layout.read(setsLeft) > 0 && this.#layout.get(n, isSettable) === 1;
    for (let to = 0; canBeSet && to <= 2 * maxOffset; to += 1) {
      emit("set", -1, n, to - maxOffset, () => {
        this.#layout.bytes[setsLeft] = this.#layout.read(setsLeft) - 1;
        this.#layout.set(n, lead, to);
      });
    }
    if (this.#layout.read(evictionsLeft) > 0 && this.#layout.get(n, holder) !== 0) {
      emit("evict", -1, n, 0, () => {
        this.#layout.bytes[evictionsLeft] = this.#layout.read(evictionsLeft) - 1;
        this.#layout.set(n, holder, 0);
        this.#layout.set(n, end, 0);
      });
    }
  }

  describeStep({ rule, attempt, node, detail }: Step): string {
    const client = attempt < 0 ? "" : `${"ABC"[attempt]} `;
    return `${client}${rule}${node < 0 ? "" : ` on node ${node + 1}`}: ${detail}`;
  }

  describe(state: Uint8Array): string {
    this.#layout.bytes.set(state);
    const nodes = Array.from({ length: this.#layout.nodes }, (_, n) => {
      const [storedHolder, until] = [this.#layout.get(n, memory), this.#layout.get(n, memoryEnd)];
      return `node ${n + 1} at ${this.#layout.clock(n)}: ${this.#layout.get(n, holder)} until ${this.#layout.get(n, end)}, has stored ${storedHolder} until ${until}, not before ${this.#layout.get(n, notBefore)}`;
    });
    const attemptPhases = Array.from({ length: this.#settings.attempts }, (_, a) => this.#layout.phase(a));
    return `time ${this.#layout.read(now)}; phases ${attemptPhases.join(" ")}; ${nodes.join("; ")}`;
  }

  /** The node executes the script, and the client counts the vote of the reply. */
  #vote(a: number, n: number, isReceived: boolean): void {
    const { mutant } = this.#settings;
    const clock = this.#layout.clock(n);
    const isRepeat = this.#layout.get(n, holder) === a + 1 && clock < this.#layout.get(n, end);
    if (!isRepeat && !this.#grant(a, n, clock)) {
      return;
    }
    const remaining =
      isRepeat && mutant === "repeat-without-wait" ? 0 : this.#layout.get(n, notBefore) - clock;
    if (isReceived && (this.#layout.isNearMajority(n) || mutant === "off-clocks-vote")) {
      this.#layout.set(n, nodeBytes + a, this.#layout.read(now) + Math.max(0, remaining) + 1);
    }
  }

  #grant(a: number, n: number, clock: number): boolean {
    if (this.#layout.get(n, holder) !== 0 && clock < this.#layout.get(n, end)) {
      return false;
    }
    const grantedBy = this.#layout.get(n, memory);
    const until = this.#layout.get(n, memoryEnd);
    if (grantedBy !== 0 && grantedBy !== a + 1 && clock < until) {
      this.#layout.set(n, holder, grantedBy); // the node votes for no other attempt
      this.#layout.set(n, end, until);
      return false;
    }
    if (grantedBy !== 0 && grantedBy !== a + 1) {
      this.#layout.set(n, notBefore, Math.max(this.#layout.get(n, notBefore), until + this.#wait));
    }
    for (const [offset, endOffset] of [[holder, end] as const, [memory, memoryEnd] as const]) {
      this.#layout.set(n, offset, a + 1);
      this.#layout.set(n, endOffset, clock + ttlUnits);
    }
    return true;
  }

  #release(a: number, n: number): void {
    if (this.#settings.mutant === "release-lowers-wait" && this.#layout.get(n, memory) === a + 1) {
      this.#layout.set(n, notBefore, 0);
    }
    for (const [offset, endOffset] of [[holder, end] as const, [memory, memoryEnd] as const]) {
      if (this.#layout.get(n, offset) === a + 1) {
        this.#layout.set(n, offset, 0);
        this.#layout.set(n, endOffset, 0);
      }
    }
  }

  #win(a: number): void {
    for (let other = 0; other < this.#settings.attempts; other += 1) {
      if (this.#layout.phase(other) === phases.holding && this.#isValid(other)) {
        this.#layout.bytes[broken] = exclusion;
      }
    }
    this.#layout.setPhase(a, phases.holding);
    this.#layout.forgetVotes(a);
  }

  #end(a: number): void {
    this.#layout.setPhase(a, phases.ended);
    this.#layout.bytes[headBytes + a * attemptBytes + 1] = 0;
    this.#layout.forgetVotes(a);
  }

  /** The validity starts when the request is sent. */
  #isValid(a: number): boolean {
    return this.#layout.read(now) < this.#layout.read(headBytes + a * attemptBytes + 1) + ttlUnits;
  }
}
