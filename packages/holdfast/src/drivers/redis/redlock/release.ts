import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import { takingBack, type Giving, type Leftover, type ReleaseListener } from "../server/release-queue.ts";
import type { Electorate } from "./node-set.ts";
import type { QuorumHold } from "./held-grant.ts";
import type { Voter } from "./quorum-node.ts";

/**
 * The release of a grant, or of what a reader does not need of a writer's, on all nodes that may have something of it; goes on
 * behind its result until each has answered or forgotten.
 */
export class QuorumRelease {
  /** Whether a majority still had it. Rejects with a `QuorumError` after the budget where too few answer. */
  readonly result: Promise<boolean>;
  /** Every node has answered, or was tried for its budget. */
  readonly done: Promise<void>;
  readonly #electorate: Electorate;
  readonly #hold: QuorumHold;
  /** By node; undefined: nothing of it can be there. */
  readonly #parts: readonly (NodeRelease | undefined)[];
  readonly #begun: number;
  /** How many nodes have not answered yet. */
  #open = 0;
  #had = 0;
  #hadNot = 0;
  #onDone: (() => void) | undefined;
  #resolve!: (released: boolean) => void;
  #reject!: (error: unknown) => void;
  #finish!: () => void;

  constructor(electorate: Electorate, hold: QuorumHold) {
    this.#electorate = electorate;
    this.#hold = hold;
    this.#begun = electorate.now();
    this.#parts = electorate.voters.map((voter) =>
      hold.mayBeOn(voter) ? new NodeRelease(this, voter) : undefined,
    );
    for (const part of this.#parts) {
      this.#open += part ? 1 : 0;
    }
    this.#hadNot = electorate.voters.length - this.#open;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Every node has answered, or was tried for its budget. */
  get isDone(): boolean {
    return this.#open === 0;
  }

  /** @param until when the nodes will have forgotten it by themselves, on the scale of `clock.now()` */
  begin(until: number, onDone?: () => void, name: Giving = "release"): void {
    const { key, keys, token } = this.#hold;
    const candidate = this.#electorate.candidate();
    this.#onDone = onDone;
    this.#judge();
    let leftover: Leftover | undefined;
    let args: readonly string[] = [];
    for (const part of this.#parts) {
      if (part) {
        const { voter } = part;
        const forgottenAt = this.#hold.forgottenAt(voter, until);
        const terms = this.#hold.termsOn(voter);
        const latest = name === "release" ? this.#hold.latestOn(voter) : 0;
        if (leftover?.terms !== terms || leftover.until !== forgottenAt || leftover.latest !== latest) {
          leftover = { key, keys, token, terms, until: forgottenAt, candidate, latest }; // most nodes are told the same
          args = takingBack(leftover, name);
        }
        voter.releaser.begin(leftover, part, name, args);
      }
    }
  }

  /** A node has answered. */
  answered(part: NodeRelease): void {
    this.#had += part.wasReleased ? 1 : 0;
    this.#hadNot += part.wasReleased ? 0 : 1;
    part.latencyMs = this.#electorate.now() - this.#begun;
    this.ended(part);
  }

  /** Nobody waits for this node any more. */
  ended(part: NodeRelease): void {
    this.#open -= part.isOpen ? 1 : 0;
    part.isOpen = false;
    this.#judge();
  }

  /**
   * A vote for the grant came after it was given up. Where the release to that node is on its way behind it, that will have taken
   * it back; else it has to be taken back once more.
   */
  heardLate(voter: Voter, takeBack: () => void): void {
    this.#behindAnswer(voter, (isPlain) => {
      if (!isPlain) {
        takeBack();
      }
    });
  }

  /** The same of a place in a queue. It is not taken back before the release is answered: that would end what is released. */
  wasQueued(voter: Voter, takeBack: () => void): void {
    this.#behindAnswer(voter, takeBack);
  }

  #behindAnswer(voter: Voter, action: (isPlain: boolean) => void): void {
    const part = this.#parts[voter.index];
    if (part?.isOpen === true) {
      part.behindAnswer = action;
    } else {
      action(false);
    }
  }

  #judge(): void {
    this.#decide();
    if (this.isDone) {
      this.#finish();
      this.#onDone?.();
    }
  }

  #decide(): void {
    const { majority, voters } = this.#electorate;
    if (this.#had >= majority) {
      this.#resolve(true);
    } else if (this.#hadNot > voters.length - majority) {
      this.#resolve(false);
    } else if (this.isDone) {
      this.#reject(this.#error());
    }
  }

  #error(): QuorumError {
    const votes = this.#electorate.voters.map((voter): NodeVote => {
      const node = voter.name;
      const { error, wasReleased = false, latencyMs = null } = this.#parts[voter.index] ?? {};
      if (error !== undefined) {
        const vote = outcomeOf(error) === "unknown" ? "timeout" : "error";
        return { node, vote, latencyMs: null, reason: messageOf(error) };
      }
      return wasReleased
        ? { node, vote: "granted", latencyMs, reason: null }
        : { node, vote: "held", latencyMs, reason: "it was not ours there" };
    });
    return new QuorumError({ key: this.#hold.key, votes, outcome: "unknown", retryable: true });
  }
}

/** The part of one node, and what it said. */
class NodeRelease implements ReleaseListener {
  readonly voter: Voter;
  isOpen = true;
  wasReleased = false;
  latencyMs: number | null = null;
  error: unknown;
  /** To be done when the node has answered, for what came late. Is told whether the node itself says that it released. */
  behindAnswer: ((isPlain: boolean) => void) | undefined;
  readonly #release: QuorumRelease;

  constructor(release: QuorumRelease, voter: Voter) {
    this.#release = release;
    this.voter = voter;
  }

  released(wasReleased: boolean, isPlain: boolean): void {
    this.wasReleased = wasReleased;
    this.error = undefined;
    this.#release.answered(this);
    this.behindAnswer?.(isPlain);
  }

  failed(error: unknown): void {
    this.error = error;
    this.#release.ended(this);
  }
}
