import type { Columns } from "../explorer/model.ts";
import type { FencingSettings } from "./settings.ts";

export const phases = {
  idle: 0,
  seeking: 1,
  holding: 2,
  /** Released, or expired. */
  past: 3,
  failed: 4,
} as const;

const headBytes = 4;
/** The bytes of an attempt: its phase, its round, its proposal to all nodes, its former proposal, token, floor, candidate. */
const attemptBytes = 7;
/**
 * The bytes of a node: the holder (attempt + 1), the number of the newest grant, and whether the node is quarantined. The last byte has one
 * bit for each attempt that had begun before its restart.
 */
const nodeBytes = 4;
/** The bytes of a link: whether an acquire has taken effect, the reply in transit, the number last received, and the round of its receipt. */
const linkBytes = 4;

/** A state, with names for its bytes. */
export class StateLayout {
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
  set broken(invariant: number) {
    this.bytes[0] = invariant;
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
  /** The largest of all numbers so far. It is stored only if candidates follow it. */
  get greatestFence(): number {
    return this.#of(3);
  }
  set greatestFence(number: number) {
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
  /** The largest token that was reported before the attempt started. */
  floor(a: number): number {
    return this.#of(this.#attempt(a) + 5);
  }
  setFloor(a: number, token: number): void {
    this.bytes[this.#attempt(a) + 5] = token;
  }
  proposal(a: number): number {
    return this.#of(this.#attempt(a) + 6);
  }
  setProposal(a: number, number: number): void {
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
  fence(n: number): number {
    return this.#of(this.#node(n) + 1);
  }
  setFence(n: number, number: number): void {
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

  /**
   * Moves attempts to other places, and replaces attempts that have ended.
   * @param origins the former place of each attempt; undefined: the attempt has not begun
   */
  rearrange(origins: readonly (number | undefined)[]): void {
    const before = this.bytes.slice();
    const move = (from: (a: number) => number, length: number): void => {
      origins.forEach((origin, a) => {
        const start = origin === undefined ? 0 : from(origin);
        this.bytes.set(
          origin === undefined ? new Uint8Array(length) : before.slice(start, start + length),
          from(a),
        );
      });
    };
    move((a) => this.#attempt(a), attemptBytes);
    for (let n = 0; n < this.nodes; n += 1) {
      const holder = this.holder(n) - 1;
      move((a) => this.#link(a, n), linkBytes);
      this.setHolder(n, origins.findIndex((origin) => origin === holder) + 1);
    }
  }

  /** Replaces every number. */
  renumber(change: (number: number) => number): void {
    for (let a = 0; a < this.attempts; a += 1) {
      this.setProposed(a, change(this.proposed(a)));
      this.setProposedBefore(a, change(this.proposedBefore(a)));
      this.setToken(a, change(this.token(a)));
      this.setFloor(a, change(this.floor(a)));
      for (let n = 0; n < this.nodes; n += 1) {
        this.setReply(a, n, change(this.reply(a, n)));
        this.setVote(a, n, change(this.vote(a, n)), this.voteRound(a, n));
      }
    }
    for (let n = 0; n < this.nodes; n += 1) {
      this.setFence(n, change(this.fence(n)));
    }
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
