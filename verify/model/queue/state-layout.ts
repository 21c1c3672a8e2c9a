import type { Columns } from "../explorer/model.ts";
import { flags, phases } from "./fields.ts";
import type { QueueSettings } from "./settings.ts";

/** The bytes before the attempts: the violated invariant, and the budgets. */
const headBytes = 13;

/** The bytes of an attempt. The last four are used if the model agrees on fencing numbers. */
const attemptBytes = 5;
const [phaseByte, roundByte, proposedByte, tokenByte, floorByte] = [0, 1, 2, 3, 4];

/**
 * The bytes of a node: the attempt that has its vote (attempt + 1), and the fencing number of that grant. Then the waiters, one bit each, and
 * whether the node is quarantined.
 */
const nodeBytes = 4;
const [holderByte, numberByte, queueByte, quarantineByte] = [0, 1, 2, 3];

/** The bytes of the link between an attempt and a node. */
const linkBytes = 8;
const [
  flagsByte,
  grantsByte,
  inquiriesByte,
  voteByte,
  yieldedByte,
  inquiredByte,
  reportRoundByte,
  replyByte,
] = [0, 1, 2, 3, 4, 5, 6, 7];

/** The largest fencing number that a message can carry, because a mask has one bit for each number. */
const maxFence = 8;

/** A state of the model, with names for its bytes. The queue needs no order: tickets are the order of the attempts. */
export class StateLayout {
  readonly bytes: Uint8Array;
  readonly nodes: number;
  readonly attempts: number;
  readonly columns: Columns;

  constructor({ nodes, attempts }: QueueSettings) {
    const width = nodeBytes + attempts * linkBytes;
    this.nodes = nodes;
    this.attempts = attempts;
    this.columns = { from: headBytes + attempts * attemptBytes, width, count: nodes };
    this.bytes = new Uint8Array(this.columns.from + width * nodes);
  }

  get(offset: number): number {
    return this.bytes[offset] as number;
  }
  set(offset: number, value: number): void {
    this.bytes[offset] = value;
  }

  /** Uses one unit of a budget. Returns whether any was left. */
  spend(budget: number): boolean {
    const left = this.get(budget);
    if (left > 0) {
      this.set(budget, left - 1);
    }
    return left > 0;
  }

  get broken(): number {
    return this.get(0);
  }
  set broken(invariant: number) {
    this.set(0, invariant);
  }

  phase(a: number): number {
    return this.get(headBytes + a * attemptBytes + phaseByte);
  }
  setPhase(a: number, phase: number): void {
    this.set(headBytes + a * attemptBytes + phaseByte, phase);
  }
  round(a: number): number {
    return this.get(headBytes + a * attemptBytes + roundByte);
  }
  setRound(a: number, round: number): void {
    this.set(headBytes + a * attemptBytes + roundByte, round);
  }
  proposed(a: number): number {
    return this.get(headBytes + a * attemptBytes + proposedByte);
  }
  setProposed(a: number, number: number): void {
    this.set(headBytes + a * attemptBytes + proposedByte, number);
  }
  token(a: number): number {
    return this.get(headBytes + a * attemptBytes + tokenByte);
  }
  setToken(a: number, number: number): void {
    this.set(headBytes + a * attemptBytes + tokenByte, number);
  }
  /** The largest token that was reported before the attempt started. */
  floor(a: number): number {
    return this.get(headBytes + a * attemptBytes + floorByte);
  }
  setFloor(a: number, number: number): void {
    this.set(headBytes + a * attemptBytes + floorByte, number);
  }

  /** Attempt + 1; 0: none. */
  holder(n: number): number {
    return this.get(this.#node(n) + holderByte);
  }
  setHolder(n: number, holder: number): void {
    this.set(this.#node(n) + holderByte, holder);
  }
  fence(n: number): number {
    return this.get(this.#node(n) + numberByte);
  }
  setFence(n: number, number: number): void {
    if (number > maxFence) {
      throw new RangeError(`Numbers of this configuration exceed ${maxFence}: its bounds are too large`);
    }
    this.set(this.#node(n) + numberByte, number);
  }
  queue(n: number): number {
    return this.get(this.#node(n) + queueByte);
  }
  enqueue(n: number, a: number): void {
    this.set(this.#node(n) + queueByte, this.queue(n) | (1 << a));
  }
  dequeue(n: number, a: number): void {
    this.set(this.#node(n) + queueByte, this.queue(n) & ~(1 << a));
  }
  isQuarantined(n: number): boolean {
    return this.get(this.#node(n) + quarantineByte) === 1;
  }
  setQuarantined(n: number, isQuarantined: boolean): void {
    this.set(this.#node(n) + quarantineByte, isQuarantined ? 1 : 0);
  }

  has(a: number, n: number, flag: number): boolean {
    return (this.get(this.#link(a, n) + flagsByte) & flag) !== 0;
  }
  raise(a: number, n: number, flag: number): void {
    const at = this.#link(a, n) + flagsByte;
    this.set(at, this.get(at) | flag);
  }
  clear(a: number, n: number, flag: number): void {
    const at = this.#link(a, n) + flagsByte;
    this.set(at, this.get(at) & ~flag);
  }
  /** Grants in transit to the attempt, by reply or notification: bit k for the number k + 1. */
  grants(a: number, n: number): number {
    return this.get(this.#link(a, n) + grantsByte);
  }
  setGrants(a: number, n: number, mask: number): void {
    this.set(this.#link(a, n) + grantsByte, mask);
  }
  inquiries(a: number, n: number): number {
    return this.get(this.#link(a, n) + inquiriesByte);
  }
  setInquiries(a: number, n: number, mask: number): void {
    this.set(this.#link(a, n) + inquiriesByte, mask);
  }
  /** The number of the vote that the attempt has from the node, as far as the attempt knows; 0: none. */
  vote(a: number, n: number): number {
    return this.get(this.#link(a, n) + voteByte);
  }
  setVote(a: number, n: number, number: number): void {
    this.set(this.#link(a, n) + voteByte, number);
  }
  yielded(a: number, n: number): number {
    return this.get(this.#link(a, n) + yieldedByte);
  }
  setYielded(a: number, n: number, number: number): void {
    this.set(this.#link(a, n) + yieldedByte, number);
  }
  inquired(a: number, n: number): number {
    return this.get(this.#link(a, n) + inquiredByte);
  }
  setInquired(a: number, n: number, number: number): void {
    this.set(this.#link(a, n) + inquiredByte, number);
  }
  /** The round in which the attempt received the vote's number. */
  reportRound(a: number, n: number): number {
    return this.get(this.#link(a, n) + reportRoundByte);
  }
  setReportRound(a: number, n: number, round: number): void {
    this.set(this.#link(a, n) + reportRoundByte, round);
  }
  /** The reply to `agree` in transit; 0: none. */
  reply(a: number, n: number): number {
    return this.get(this.#link(a, n) + replyByte);
  }
  setReply(a: number, n: number, answer: number): void {
    this.set(this.#link(a, n) + replyByte, answer);
  }

  /** Whether the attempt waits or holds, so that its knowledge matters. */
  isActive(a: number): boolean {
    const phase = this.phase(a);
    return phase === phases.waiting || phase === phases.settling || phase === phases.holding;
  }
  isAcquiring(a: number): boolean {
    const phase = this.phase(a);
    return phase === phases.waiting || phase === phases.settling;
  }
  votes(a: number): number {
    let votes = 0;
    for (let n = 0; n < this.nodes; n += 1) {
      votes += this.vote(a, n) > 0 ? 1 : 0;
    }
    return votes;
  }
  hasMessagesInTransit(a: number, n: number): boolean {
    const requests = flags.acquire | flags.yield | flags.release | flags.agree | flags.extend | flags.refill;
    return (
      this.has(a, n, requests) ||
      this.grants(a, n) !== 0 ||
      this.inquiries(a, n) !== 0 ||
      this.reply(a, n) !== 0
    );
  }
  /** Clears the attempt's knowledge and the messages in transit to the attempt. Its own requests stay in transit. */
  forgetLink(a: number, n: number): void {
    const at = this.#link(a, n);
    for (let byte = grantsByte; byte < linkBytes; byte += 1) {
      if (byte !== yieldedByte || !this.has(a, n, flags.yield)) {
        this.set(at + byte, 0); // a yield in transit contains its number
      }
    }
    this.clear(a, n, flags.isAgreeing | flags.agreeSent);
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
    move((a) => headBytes + a * attemptBytes, attemptBytes);
    for (let n = 0; n < this.nodes; n += 1) {
      const [holder, queue] = [this.holder(n) - 1, this.queue(n)];
      move((a) => this.#link(a, n), linkBytes);
      this.setHolder(n, origins.findIndex((origin) => origin === holder) + 1);
      const mask = origins.map((origin, a) => (origin !== undefined && (queue >> origin) & 1 ? 1 << a : 0));
      this.set(
        this.#node(n) + queueByte,
        mask.reduce((sum, bit) => sum | bit, 0),
      );
    }
  }

  #node(n: number): number {
    return this.columns.from + n * this.columns.width;
  }
  #link(a: number, n: number): number {
    return this.columns.from + n * this.columns.width + nodeBytes + a * linkBytes;
  }
}
