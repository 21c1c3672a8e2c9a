import type { Columns } from "../explorer/model.ts";
import type { FencingSettings } from "./settings.ts";

export const phases = {
  idle: 0,
  seeking: 1,
  holding: 2,
  /** Released, or its validity is over. */
  past: 3,
  failed: 4,
} as const;

const headBytes = 4;
/** Of an attempt: its phase, its round, what it proposes to all nodes, what it proposed before, token, floor, candidate. */
const attemptBytes = 7;
/**
 * Of a node: the holder (attempt + 1), the number of the newest grant, whether it may have forgotten, and which attempts had begun
 * when it restarted (one bit each).
 */
const nodeBytes = 4;
/** Between the two: whether an acquire has taken effect, the reply under way, the number heard last, in which round that was. */
const linkBytes = 4;

/** A state, with names for its bytes. */
export class Board {
  readonly bytes: Uint8Array;
  readonly nodes: number;
  readonly attempts: number;
  readonly columns: Columns;

  constructor({ nodes, attempts }: FencingSettings) {
    const width = nodeBytes + attempts * linkBytes;
    this.nodes = nodes;
    this.attempts = attempts;
    this.columns = { from: headBytes + attempts * attemptBytes, width, count: nodes };
    this.bytes = new Uint8Array(this.columns.from + width * nodes);
  }

  #of(offset: number): number {
    return this.bytes[offset] as number;
  }

  get broken(): number {
    return this.#of(0);
  }
  set broken(promise: number) {
    this.bytes[0] = promise;
  }
  get extraEffects(): number {
    return this.#of(1);
  }
  set extraEffects(left: number) {
    this.bytes[1] = left;
  }
  get restarts(): number {
    return this.#of(2);
  }
  set restarts(left: number) {
    this.bytes[2] = left;
  }
  /** Of all numbers that were ever given; kept only where candidates follow it. */
  get greatest(): number {
    return this.#of(3);
  }
  set greatest(number: number) {
    this.bytes[3] = number;
  }

  #attempt(a: number): number {
    return headBytes + a * attemptBytes;
  }
  phase(a: number): number {
    return this.#of(this.#attempt(a));
  }
  setPhase(a: number, phase: number): void {
    this.bytes[this.#attempt(a)] = phase;
  }
  round(a: number): number {
    return this.#of(this.#attempt(a) + 1);
  }
  setRound(a: number, round: number): void {
    this.bytes[this.#attempt(a) + 1] = round;
  }
  proposed(a: number): number {
    return this.#of(this.#attempt(a) + 2);
  }
  setProposed(a: number, number: number): void {
    this.bytes[this.#attempt(a) + 2] = number;
  }
  proposedBefore(a: number): number {
    return this.#of(this.#attempt(a) + 3);
  }
  setProposedBefore(a: number, number: number): void {
    this.bytes[this.#attempt(a) + 3] = number;
  }
  token(a: number): number {
    return this.#of(this.#attempt(a) + 4);
  }
  setToken(a: number, token: number): void {
    this.bytes[this.#attempt(a) + 4] = token;
  }
  /** The largest token that was told before it started. */
  floor(a: number): number {
    return this.#of(this.#attempt(a) + 5);
  }
  setFloor(a: number, token: number): void {
    this.bytes[this.#attempt(a) + 5] = token;
  }
  candidate(a: number): number {
    return this.#of(this.#attempt(a) + 6);
  }
  setCandidate(a: number, number: number): void {
    this.bytes[this.#attempt(a) + 6] = number;
  }

  #node(n: number): number {
    return this.columns.from + n * this.columns.width;
  }
  holder(n: number): number {
    return this.#of(this.#node(n));
  }
  setHolder(n: number, holder: number): void {
    this.bytes[this.#node(n)] = holder;
  }
  number(n: number): number {
    return this.#of(this.#node(n) + 1);
  }
  setNumber(n: number, number: number): void {
    this.bytes[this.#node(n) + 1] = number;
  }
  isQuarantined(n: number): boolean {
    return this.#of(this.#node(n) + 2) === 1;
  }
  setQuarantined(n: number, isQuarantined: boolean): void {
    this.bytes[this.#node(n) + 2] = isQuarantined ? 1 : 0;
  }

  begunBefore(n: number): number {
    return this.#of(this.#node(n) + 3);
  }
  setBegunBefore(n: number, attempts: number): void {
    this.bytes[this.#node(n) + 3] = attempts;
  }

  #link(a: number, n: number): number {
    return this.#node(n) + nodeBytes + a * linkBytes;
  }
  hasTakenEffect(a: number, n: number): boolean {
    return this.#of(this.#link(a, n)) === 1;
  }
  setTakenEffect(a: number, n: number): void {
    this.bytes[this.#link(a, n)] = 1;
  }
  reply(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 1);
  }
  setReply(a: number, n: number, number: number): void {
    this.bytes[this.#link(a, n) + 1] = number;
  }
  vote(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 2);
  }
  setVote(a: number, n: number, number: number, round: number): void {
    this.bytes[this.#link(a, n) + 2] = number;
    this.bytes[this.#link(a, n) + 3] = round;
  }
  voteRound(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 3);
  }
  votes(a: number): number {
    let votes = 0;
    for (let n = 0; n < this.nodes; n += 1) {
      votes += this.vote(a, n) > 0 ? 1 : 0;
    }
    return votes;
  }
}
