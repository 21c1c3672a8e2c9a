import type { ListQuery } from "../../../../driver.ts";
import { QuorumError } from "../../../../errors.ts";
import type { FenceState, LockState, NodeState } from "../../../../lock-state.ts";
import type { KeySpace } from "../../protocol/keys.ts";
import { breakByMajority } from "./break.ts";
import type { Electorate } from "../node-set.ts";
import { listByMajority } from "./list.ts";
import { QuorumView } from "./lock-view.ts";

/** What operators ask of a quorum: each answer is what a majority of the nodes says. */
export class Census {
  readonly #electorate: Electorate;
  readonly #keySpace: KeySpace;
  readonly #budgetMs: number;

  /** @param budgetMs how long the nodes are asked at the most */
  constructor(electorate: Electorate, keySpace: KeySpace, budgetMs: number) {
    this.#electorate = electorate;
    this.#keySpace = keySpace;
    this.#budgetMs = budgetMs;
  }

  async inspect(key: string): Promise<LockState> {
    return (await this.#view(key)).describe();
  }

  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.ready(undefined, () =>
      listByMajority(this.#electorate, this.#keySpace, query, (key) => this.#view(key)),
    );
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    const view = await this.#view(key, (seen) => !seen.isUndecided(fencingToken));
    return breakByMajority(this.#electorate, view, this.#keySpace.keysOf(key), fencingToken, reason);
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return (await this.#view(key, (seen) => !seen.isUndecided(fencingToken))).judgeFence(fencingToken);
  }

  /** Also of those who do not vote, and why. */
  nodes(): Promise<NodeState[]> {
    return Promise.all(
      this.#electorate.voters.map(async (voter) => {
        await voter.meet().catch(() => undefined);
        const state = await voter.node.state();
        const quarantine = this.#electorate.quarantineOf(voter);
        return {
          ...state,
          quarantine: quarantine ? { reason: quarantine.reason, remainingMs: quarantine.remainingMs } : null,
        };
      }),
    );
  }

  /** Behind the first meeting with a majority. */
  async ready<T>(key: string | undefined, action: () => Promise<T>): Promise<T> {
    if (!this.#electorate.isReady) {
      try {
        await this.#electorate.ready();
      } catch (error) {
        throw error instanceof QuorumError ? error.about(key) : error;
      }
    }
    return action();
  }

  #view(key: string, isEnough?: (view: QuorumView) => boolean): Promise<QuorumView> {
    const keys = this.#keySpace.keysOf(key);
    return this.ready(key, () => QuorumView.of(this.#electorate, key, keys, this.#budgetMs, isEnough));
  }
}
