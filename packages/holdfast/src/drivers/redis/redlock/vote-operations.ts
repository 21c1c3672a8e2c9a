import type { AcquireRequest } from "../../../driver.ts";
import { withCandidate } from "../protocol/operation.ts";
import { encodeWords } from "../protocol/metadata.ts";
import type { Ballot } from "./vote-request.ts";
import type { Electorate } from "./node-set.ts";
import type { QuorumHost } from "./request-host.ts";

interface WordingOptions {
  readonly wanted: AcquireRequest;
  /** When its request stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  readonly token: string;
  readonly isPastBound: boolean;
}

/** What a bid says to a node, in the words of the script. */
export class Wording {
  readonly #token: string;
  readonly #ttlMs: string;
  readonly #want: string;
  /** An owner's own words. */
  readonly #words: string;
  /** How many numbers a grant has. */
  readonly #count: number;
  /** How a place in a queue is asked for. */
  readonly #place: string;
  readonly #electorate: Electorate;
  /** What a queue member says between its token and the kind of its channel. */
  readonly #terms: string;
  /** The same with the kind: that of most nodes. */
  #member = "";
  /** Most nodes are asked in the same words: they get one array. */
  #asked: readonly string[] = [];
  #args: readonly string[] = [];

  constructor({ clock, claimMs, electorate }: QuorumHost, options: WordingOptions) {
    const { wanted, deadline, token, isPastBound } = options;
    const { ttlMs, want, words } = wanted;
    const leftMs = deadline - clock.now();
    // A node's clock may be ahead of the median: it must not pass over who still waits.
    const { maxClockDifferenceMs } = electorate;
    const until =
      leftMs === Infinity ? 0 : Math.ceil(electorate.micros() / 1000 + leftMs + maxClockDifferenceMs);
    this.#terms = `${Math.min(ttlMs, claimMs)} ${want} ${until}`;
    this.#token = token;
    this.#ttlMs = String(ttlMs);
    this.#want = String(want);
    this.#count = want;
    this.#words = encodeWords(words);
    this.#place = isPastBound ? "3" : "2";
    this.#electorate = electorate;
  }

  /** The request for a node's vote. @param waits a place in its queue is wanted as well */
  request(ballot: Ballot, candidate: string, waits: boolean): readonly string[] {
    const member = this.memberOn(ballot);
    const wait = waits ? this.#place : "0";
    const [askedCandidate, askedMember, askedWait] = this.#asked;
    if (askedCandidate !== candidate || askedMember !== member || askedWait !== wait) {
      this.#asked = [candidate, member, wait];
      const args = ["acquire", this.#token, member, this.#ttlMs, this.#want, wait, this.#words];
      this.#args = withCandidate([...args, this.#electorate.latestExecution()], candidate);
    }
    return this.#args;
  }

  /** The vote with this number is given back, and asked for again. */
  yielding(ballot: Ballot, number: number, candidate: string): readonly string[] {
    const args = [
      "yield",
      this.#token,
      this.memberOn(ballot),
      String(number),
      this.#ttlMs,
      this.#want,
      this.#words,
      this.#electorate.latestExecution(),
    ];
    return withCandidate(args, candidate);
  }

  /** The grant shall have this number from now on, where it is not above it already. */
  agreement(number: number): readonly string[] {
    return withCandidate(["agree", this.#token, String(number), this.#want], String(number));
  }

  /** What its queue member says on this node after the token. */
  memberOn({ voter }: Ballot): string {
    const kind = voter.node.channelKind;
    if (!this.#member.endsWith(kind)) {
      this.#member = `${this.#terms} ${kind}`;
    }
    return this.#member;
  }

  /** A node says no more of a usual grant than its first number. */
  grantFrom(first: number): readonly unknown[] {
    return [1, first, first + this.#count - 1];
  }
}
