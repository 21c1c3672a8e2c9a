import type { Columns } from "../explorer/model.ts";
import type { ExtensionSettings } from "./settings.ts";

export const phases = { idle: 0, seeking: 1, holding: 2, past: 3 } as const;

/** The phases of a holder's round of extension. */
export const rounds = { none: 0, requested: 1, confirmed: 2 } as const;

/** Replies to `extend` that are not a number. */
export const absent = 254;
export const others = 255;

export const flags = {
  /** An `extend` of this round is in transit. */
  extend: 2,
  /** An `acquire` that refills the node is in transit. */
  refill: 4,
  /** The node has held the grant since before this round, and confirmed it in this round. */
  counts: 8,
  /** The node counts from the next round on. */
  isNew: 16,
  /** The node replied that it does not have the grant. */
  isWithout: 32,
  /** The node is to be refilled once this round is confirmed. */
  needsRefill: 64,
  /** The reply in transit answers an acquire, and not `extend`. */
  isReplyToAcquire: 128,
} as const;

const headBytes = 1;
/**
 * The bytes of an attempt: its phase, its round, and the attempts that began since its last confirmation. The last byte is whether one of
 * these was elected before the round.
 */
const attemptBytes = 4;
/** The bytes of a node: the holder (attempt + 1), and the number of the newest grant. */
const nodeBytes = 2;
/** The bytes of a link: flags, the reply in transit, the member's number (a seeker's vote), and the number that joins on confirmation. */
const linkBytes = 4;
export const numbersOfLink = 3;

/** A state, with names for its bytes. */
export class StateLayout {
  readonly bytes: Uint8Array;
  readonly nodes: number;
  readonly attempts: number;
  readonly columns: Columns;

  constructor({ nodes, attempts }: ExtensionSettings) {
    const width = nodeBytes + attempts * linkBytes;
    this.nodes = nodes;
    this.attempts = attempts;
    this.columns = { from: headBytes + attempts * attemptBytes, width, count: nodes };
    this.bytes = new Uint8Array(this.columns.from + width * nodes);
  }

  #of(offset: number): number {
    return this.bytes[offset] as number;
  }

  set broken(invariant: number) {
    this.bytes[0] = invariant;
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
  /** One bit for each attempt. */
  begunSince(a: number): number {
    return this.#of(this.#attempt(a) + 2);
  }
  setBegunSince(a: number, attempts: number): void {
    this.bytes[this.#attempt(a) + 2] = attempts;
  }
  isOvertaken(a: number): boolean {
    return this.#of(this.#attempt(a) + 3) === 1;
  }
  setOvertaken(a: number, isOvertaken: boolean): void {
    this.bytes[this.#attempt(a) + 3] = isOvertaken ? 1 : 0;
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

  #link(a: number, n: number): number {
    return this.#node(n) + nodeBytes + a * linkBytes;
  }
  has(a: number, n: number, flag: number): boolean {
    return (this.#of(this.#link(a, n)) & flag) !== 0;
  }
  raise(a: number, n: number, flag: number): void {
    this.bytes[this.#link(a, n)] = this.#of(this.#link(a, n)) | flag;
  }
  clear(a: number, n: number, flag: number): void {
    this.bytes[this.#link(a, n)] = this.#of(this.#link(a, n)) & ~flag;
  }
  /** The first of the bytes of a link that contain numbers of its node. There are `numbersOfLink`. */
  numbersFrom(a: number, n: number): number {
    return this.#link(a, n) + 1;
  }
  reply(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 1);
  }
  setReply(a: number, n: number, reply: number): void {
    this.bytes[this.#link(a, n) + 1] = reply;
  }
  member(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 2);
  }
  setMember(a: number, n: number, number: number): void {
    this.bytes[this.#link(a, n) + 2] = number;
  }
  joins(a: number, n: number): number {
    return this.#of(this.#link(a, n) + 3);
  }
  setJoins(a: number, n: number, number: number): void {
    this.bytes[this.#link(a, n) + 3] = number;
  }
  count(a: number, flag: number): number {
    let count = 0;
    for (let n = 0; n < this.nodes; n += 1) {
      count += this.has(a, n, flag) ? 1 : 0;
    }
    return count;
  }
  members(a: number): number {
    let count = 0;
    for (let n = 0; n < this.nodes; n += 1) {
      count += this.member(a, n) > 0 ? 1 : 0;
    }
    return count;
  }
}
