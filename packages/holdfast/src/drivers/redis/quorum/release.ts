import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf } from "../failures.ts";
import type { Leftover } from "../releaser.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumHold } from "./hold.ts";
import type { Voter } from "./voter.ts";

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
  #resolve!: (released: boolean) => void;
  #reject!: (error: unknown) => void;
  #finish!: () => void;
  /** Nodes that have not answered yet. */
  readonly #open: Set<Voter>;
  readonly #failures = new Map<Voter, unknown>();
  readonly #late = new Map<Voter, () => void>();
  readonly #answers = new Map<Voter, { readonly released: boolean; readonly latencyMs: number }>();
  readonly #begun: number;
  #had = 0;
  #hadNot = 0;

  constructor(electorate: Electorate, hold: QuorumHold) {
    this.#electorate = electorate;
    this.#hold = hold;
    this.#begun = electorate.now();
    this.#open = new Set(electorate.voters.filter((voter) => hold.mayBeOn(voter)));
    this.#hadNot = electorate.voters.length - this.#open.size;
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
    return this.#open.size === 0;
  }

  /** @param until when the nodes will have forgotten it by themselves, on the scale of `clock.now()` */
  begin(until: number, onDone?: () => void, name?: "downgrade"): void {
    const { key, keys, token } = this.#hold;
    const candidate = this.#electorate.candidate();
    const finishIfDone = (): void => {
      if (this.isDone) {
        this.#finish();
        onDone?.();
      }
    };
    const ended = (voter: Voter): void => {
      this.#open.delete(voter);
      this.#decide();
      finishIfDone();
    };
    this.#decide();
    finishIfDone();
    for (const voter of this.#open) {
      const terms = this.#hold.termsOn(voter);
      const leftover: Leftover = {
        key,
        keys,
        token,
        terms,
        until: this.#hold.forgottenAt(voter, until),
        candidate,
      };
      voter.releaser.begin(
        leftover,
        (released, isPlain) => {
          this.#had += released ? 1 : 0;
          this.#hadNot += released ? 0 : 1;
          this.#answers.set(voter, { released, latencyMs: this.#electorate.now() - this.#begun });
          this.#failures.delete(voter);
          ended(voter);
          if (!isPlain) {
            this.#late.get(voter)?.();
          }
        },
        (error) => {
          this.#failures.set(voter, error);
          ended(voter);
        },
        name,
      );
    }
  }

  /**
   * A vote for the grant came after it was given up. Where the release to that node is on its way behind it, that will have taken
   * it back; else it has to be taken back once more.
   */
  heardLate(voter: Voter, takeBack: () => void): void {
    if (this.#open.has(voter)) {
      this.#late.set(voter, takeBack);
    } else {
      takeBack();
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
      const error = this.#failures.get(voter);
      if (error !== undefined) {
        const vote = outcomeOf(error) === "unknown" ? "timeout" : "error";
        return { node, vote, latencyMs: null, reason: messageOf(error) };
      }
      const { released = false, latencyMs = null } = this.#answers.get(voter) ?? {};
      return released
        ? { node, vote: "granted", latencyMs, reason: null }
        : { node, vote: "held", latencyMs, reason: "it was not ours there" };
    });
    return new QuorumError({ key: this.#hold.key, votes, outcome: "unknown", retryable: true });
  }
}
