import { flags, notHolder, phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";
import { violatedInvariant } from "./property-check.ts";
import type { QueueSettings } from "./settings.ts";

/** An attempt is abandoned after this many rounds without one number. */
const maxRounds = 3;

/**
 * The reaction of a client to what it receives. All immediate consequences belong to the same step, because no other process sees the states
 * between.
 */
export class ClientRules {
  readonly majority: number;
  readonly #layout: StateLayout;
  readonly #settings: QueueSettings;

  constructor(layout: StateLayout, settings: QueueSettings) {
    this.#layout = layout;
    this.#settings = settings;
    this.majority = Math.floor((settings.nodes + settings.silentNodes) / 2) + 1;
  }

  start(a: number): void {
    const layout = this.#layout;
    layout.setPhase(a, phases.waiting);
    if (this.#settings.numbers === "agreed") {
      layout.setRound(a, 1);
      for (let other = 0; other < layout.attempts; other += 1) {
        layout.setFloor(a, Math.max(layout.floor(a), layout.token(other)));
      }
    }
    for (let n = 0; n < layout.nodes; n += 1) {
      layout.raise(a, n, flags.acquire);
    }
  }

  /** Sends the requests again. A client that yielded its vote repeats the yield until the node has another number for the client. */
  requestVotes(a: number, n: number): void {
    const isRetry = this.#layout.yielded(a, n) > 0 && this.#settings.mutant !== "yield-not-repeated";
    this.#layout.raise(a, n, isRetry ? flags.yield : flags.acquire);
  }

  receiveGrant(a: number, n: number, number: number): void {
    const layout = this.#layout;
    if (!layout.isAcquiring(a)) {
      return;
    }
    if (layout.isQuarantined(n)) {
      layout.raise(a, n, flags.release); // the node may have lost data, so clean up the grant it may have
      return;
    }
    const isReleased = number <= layout.yielded(a, n) && this.#settings.mutant !== "yielded-vote-counts";
    if (!isReleased && number >= layout.vote(a, n)) {
      layout.setVote(a, n, number);
      layout.setReportRound(a, n, layout.round(a));
    }
    this.receivedReply(a, n);
  }

  receiveInquiry(a: number, n: number, number: number): void {
    const layout = this.#layout;
    if (layout.isAcquiring(a)) {
      if (number > layout.yielded(a, n)) {
        layout.setInquired(a, n, Math.max(layout.inquired(a, n), number));
        this.#yieldIfRequested(a, n);
      }
    } else if (this.#settings.mutant === "yield-after-election" && layout.phase(a) === phases.holding) {
      layout.setYielded(a, n, number);
      layout.raise(a, n, flags.yield);
    }
  }

  receiveFence(a: number, n: number, answer: number): void {
    const layout = this.#layout;
    layout.clear(a, n, flags.isAgreeing);
    if (!layout.isAcquiring(a) || layout.vote(a, n) === 0) {
      return;
    }
    if (answer === notHolder) {
      layout.setVote(a, n, 0);
      this.requestVotes(a, n);
    } else if (answer >= layout.vote(a, n)) {
      layout.setVote(a, n, answer);
      layout.setReportRound(a, n, layout.round(a));
    }
    this.receivedReply(a, n);
  }

  /** A vote was received or lost. */
  receivedReply(a: number, n: number): void {
    const layout = this.#layout;
    if (this.#isElected(a)) {
      if (this.#settings.numbers === "agreed") {
        this.#decide(a, n);
      } else if (layout.phase(a) === phases.waiting) {
        this.win(a, 0);
      }
    } else if (layout.isAcquiring(a)) {
      layout.setPhase(a, phases.waiting);
      for (let each = 0; each < layout.nodes; each += 1) {
        this.#yieldIfRequested(a, each);
      }
    }
  }

  win(a: number, token: number): void {
    const layout = this.#layout;
    layout.broken ||= violatedInvariant(layout, a, token);
    layout.setPhase(a, phases.holding);
    layout.setToken(a, token);
  }

  /** The validity of a vote has expired by the client's clock. A holder without a majority has lost the lock. */
  loseVote(a: number, n: number): void {
    const layout = this.#layout;
    layout.setVote(a, n, 0);
    if (layout.phase(a) === phases.holding) {
      if (layout.votes(a) < this.majority) {
        this.end(a);
      }
    } else {
      this.receivedReply(a, n);
    }
  }

  /** Ends the attempt after a release, a cancel or a loss. The release goes to all nodes, with or without a vote. */
  end(a: number): void {
    const layout = this.#layout;
    const wasSeeking = layout.isAcquiring(a);
    layout.setPhase(a, phases.ended);
    for (let n = 0; n < layout.nodes; n += 1) {
      if (!wasSeeking || this.#settings.mutant !== "no-release-of-losers") {
        layout.raise(a, n, flags.release);
      }
    }
  }

  #isElected(a: number): boolean {
    if (this.#settings.mutant !== "majority-of-answers") {
      return this.#layout.votes(a) >= this.majority;
    }
    let votingNodes = 0;
    for (let n = 0; n < this.#layout.nodes; n += 1) {
      votingNodes += this.#layout.isQuarantined(n) ? 0 : 1;
    }
    return this.#layout.votes(a) >= Math.floor(votingNodes / 2) + 1;
  }

  #yieldIfRequested(a: number, n: number): void {
    const layout = this.#layout;
    const vote = layout.vote(a, n);
    const inquired = layout.inquired(a, n);
    if (vote === 0 || inquired < vote || this.#isElected(a) || this.#settings.mutant === "no-yield") {
      return;
    }
    if (layout.has(a, n, flags.yield)) {
      layout.raise(a, n, flags.acquire); // an older yield is in transit, but its number has ended, so it acts as an acquire
    }
    layout.setYielded(a, n, inquired);
    layout.setVote(a, n, 0);
    layout.raise(a, n, flags.yield);
  }

  /** The agreement rule: the token is a number that a majority reported in the same round. */
  #decide(a: number, node: number): void {
    const layout = this.#layout;
    const agreed = this.#agreedFence(a);
    if (agreed >= Math.max(1, layout.proposed(a))) {
      this.win(a, agreed);
      return;
    }
    if (this.#anyLinkHas(a, flags.isAgreeing)) {
      if (layout.vote(a, node) !== layout.proposed(a)) {
        this.#requestRaise(a, node);
      }
    } else if (layout.round(a) < maxRounds) {
      this.#nextRound(a);
    } else {
      this.end(a); // a new token would be another attempt
    }
  }

  #nextRound(a: number): void {
    const layout = this.#layout;
    let largest = 0;
    for (let n = 0; n < layout.nodes; n += 1) {
      largest = Math.max(largest, layout.vote(a, n));
      layout.clear(a, n, flags.agreeSent);
    }
    layout.setRound(a, layout.round(a) + 1);
    layout.setProposed(a, largest);
    for (let n = 0; n < layout.nodes; n += 1) {
      this.#requestRaise(a, n);
    }
  }

  #requestRaise(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.vote(a, n) > 0 && !layout.has(a, n, flags.agreeSent)) {
      layout.raise(a, n, flags.agree | flags.isAgreeing | flags.agreeSent);
    }
  }

  #anyLinkHas(a: number, flag: number): boolean {
    for (let n = 0; n < this.#layout.nodes; n += 1) {
      if (this.#layout.vote(a, n) > 0 && this.#layout.has(a, n, flag)) {
        return true;
      }
    }
    return false;
  }

  /** 0: none. */
  #agreedFence(a: number): number {
    const layout = this.#layout;
    let largest = 0;
    for (let n = 0; n < layout.nodes; n += 1) {
      const number = layout.vote(a, n);
      let same = 0;
      for (let other = 0; other < layout.nodes; other += 1) {
        const isSame =
          layout.vote(a, other) === number && layout.reportRound(a, other) === layout.reportRound(a, n);
        same += isSame ? 1 : 0;
      }
      if (number > 0 && same >= this.majority) {
        return number;
      }
      largest = Math.max(largest, number);
    }
    return this.#settings.mutant === "one-round-without-agreement" ? largest : 0;
  }
}
