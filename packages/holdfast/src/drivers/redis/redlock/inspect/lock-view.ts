import { QuorumError } from "../../../../errors.ts";
import {
  localWaitersOf,
  lockState,
  type FenceState,
  type LockState,
  type NodeView,
} from "../../../../lock-state.ts";
import type { Electorate } from "../node-set.ts";
import { engineError, isTransient, messageOf, outcomeOf, refusalBy } from "../../server/errors.ts";
import {
  holderOf,
  holdsWith,
  newestOf,
  ownersOf,
  readFacts,
  remainingOf,
  tokenOf,
  type Facts,
} from "../../server/lock-snapshot.ts";
import type { LockKeys } from "../../protocol/keys.ts";
import { noCandidate, withCandidate } from "../../protocol/operation.ts";
import { latestWords } from "../../protocol/metadata.ts";
import { reachedByMajority } from "../majority.ts";
import { SharedView } from "./shared-lock-view.ts";
import type { Voter } from "../quorum-node.ts";

const pauseMs = 50;

/** What one node answered to `inspect`, or why it did not. */
interface Testimony {
  readonly voter: Voter;
  readonly facts: Facts | undefined;
  readonly error: unknown;
}

type Answered = Testimony & { readonly facts: Facts };

/** What the nodes say of one lock, and what the majority says. */
export class QuorumView {
  readonly key: string;
  readonly testimonies: readonly Testimony[];
  /** The token that has a majority; "" nobody's. */
  readonly holder: string;
  /** Of a lock that several may hold. */
  readonly shared: SharedView | undefined;
  readonly #electorate: Electorate;
  /** Of those who answered, who may vote. */
  readonly #counted: readonly Answered[];

  private constructor(electorate: Electorate, key: string, testimonies: readonly Testimony[]) {
    this.#electorate = electorate;
    this.key = key;
    this.testimonies = testimonies;
    // Only now: the last of the answers may have shown that the nodes have one time, as after the machine slept.
    this.#counted = this.#answered.filter(({ voter }) => !electorate.quarantineOf(voter));
    const holders = this.#counted.map(({ facts }) => facts.holder);
    this.holder = this.#mostTold(holders.filter((holder) => holder !== "")) ?? "";
    this.shared = SharedView.of(
      this.#counted.map(({ facts }) => facts),
      electorate.majority,
    );
  }

  /**
   * Asks all nodes, until what they say is enough. Rejects with a `QuorumError` where it is not until `budgetMs` has passed, as
   * where less than a majority answers.
   */
  static async of(
    electorate: Electorate,
    key: string,
    keys: LockKeys,
    budgetMs: number,
    isEnough: (view: QuorumView) => boolean = () => true,
  ): Promise<QuorumView> {
    const endsAt = electorate.now() + budgetMs;
    for (;;) {
      try {
        const view = await QuorumView.#ask(electorate, key, keys);
        if (!isEnough(view)) {
          throw noQuorum(key, view.testimonies);
        }
        return view;
      } catch (error) {
        if (!isTransient(error) || electorate.now() + pauseMs > endsAt) {
          throw error;
        }
        await electorate.pause(pauseMs); // nodes that are late answer the next question at once, or not at all
      }
    }
  }

  static async #ask(electorate: Electorate, key: string, keys: LockKeys): Promise<QuorumView> {
    const testimonies = await Promise.all(electorate.voters.map((voter) => testify(voter, keys)));
    if (testimonies.filter(({ facts }) => facts !== undefined).length < electorate.majority) {
      throw noQuorum(key, testimonies);
    }
    return new QuorumView(electorate, key, testimonies);
  }

  /** The nodes that have the majority's holder; where there are several, the first of them. */
  get holding(): readonly Answered[] {
    const holder = this.holder === "" ? this.shared?.holders[0]?.token : this.holder;
    return holder === undefined ? [] : this.#answered.filter(({ facts }) => has(facts, holder));
  }

  /** The nodes that have the lease with this number, and how each names it; undefined: it is not a present one. */
  grantsOf(fencingToken: bigint): readonly { readonly voter: Voter; readonly name: string }[] | undefined {
    const sharing = this.shared?.holders.find((holder) => holder.fencingToken === fencingToken);
    if (sharing) {
      const { token } = sharing;
      return this.#answered
        .filter(({ facts }) => has(facts, token))
        .map(({ voter }) => ({ voter, name: token }));
    }
    const { newest, holding } = this;
    if (this.holder === "" || newest === null || fencingToken < newest) {
      return undefined;
    }
    const told = holding.find(({ facts }) => newestOf(facts) === newest)?.facts.last ?? newest;
    return fencingToken > told
      ? undefined
      : holding.map(({ voter, facts }) => ({ voter, name: String(facts.first ?? 0) }));
  }

  /** With the nodes that did not answer, or do not count, a majority may have a present lease with this number. */
  isUndecided(fencingToken: bigint): boolean {
    const { majority, voters } = this.#electorate;
    const telling = this.#counted.filter(({ facts }) => gave(facts, fencingToken)).length;
    const missing = voters.length - this.#counted.length;
    return this.grantsOf(fencingToken) === undefined && telling + missing >= majority;
  }

  /** The number of the present lease, as a majority has it; of a free lock that of the last one. */
  get newest(): bigint | null {
    const told = this.holder === "" ? this.#counted : this.holding; // of those who share, that of the last grant
    const numbers = told.map(({ facts }) => newestOf(facts)).filter((number) => number !== null);
    return this.#mostTold(numbers) ?? null;
  }

  /** Whether the lease with this number holds the key: where a majority has its token, and gave the number. */
  judgeFence(fencingToken: bigint): FenceState {
    const { majority } = this.#electorate;
    const sharing = this.#counted.flatMap(
      ({ facts }) => facts.shared?.holders.find((holder) => holdsWith(holder, fencingToken))?.token ?? [],
    );
    const holding = this.#counted.filter(({ facts }) => this.holder !== "" && facts.holder === this.holder);
    const giving = holding.filter(({ facts }) => gave(facts, fencingToken));
    if (this.#mostTold(sharing) !== undefined) {
      return "current";
    } else if (giving.length < majority || holding.some(({ facts }) => isPast(facts, fencingToken))) {
      return "stale";
    }
    // A node that was filled again has the token with another block, and knows the number by a renewal.
    const blocks = giving.filter(({ facts }) => facts.first !== null && facts.first <= fencingToken);
    const isLast = blocks.length > 0 && blocks.every(({ facts }) => facts.last === fencingToken);
    return isLast ? "current" : "unknown";
  }

  async describe(): Promise<LockState> {
    const waiting = this.#waiting();
    const shown = waiting.slice(0, 100);
    const sharing = this.shared?.holders.map(({ token }) => token) ?? [];
    const held = this.#answered.map(({ facts }) => facts.holder);
    const owners = await this.#ownersOf([...held, this.holder, ...sharing, ...shown]);
    const ownerOf = (token: string): string => owners.get(token) ?? "unknown";
    const counts = this.#counted.map(({ facts }) => facts.waiterCount);
    const { majority } = this.#electorate;
    const described = this.shared?.describe(ownerOf) ?? this.#describeMutex(ownerOf);
    const waiterCount = Math.max(shown.length, reachedByMajority(counts, majority) ?? 0);
    return lockState({
      key: this.key,
      ...described,
      waiters: shown.map((token, position) => ({ owner: ownerOf(token), position })),
      waiterCount: waiterCount + localWaitersOf(described.holders),
      fencingToken: this.newest,
      nodes: this.testimonies.map((testimony) => this.#nodeView(testimony, ownerOf)),
    });
  }

  #describeMutex(
    ownerOf: (token: string) => string,
  ): Pick<LockState, "kind" | "limit" | "holders" | "remainingMs"> {
    const [one] = this.holder === "" ? [] : this.holding;
    const remaining = this.holding.map(({ facts }) => remainingOf(facts) ?? Infinity);
    const remainingMs = reachedByMajority(remaining, this.#electorate.majority) ?? Infinity;
    const facts = one && {
      ...one.facts,
      remainingMs: remainingMs === Infinity ? -1 : remainingMs,
      words: latestWords(this.holding.map((answered) => answered.facts.words)),
    };
    return {
      kind: "mutex",
      limit: 1,
      holders: facts ? [holderOf(facts, ownerOf(this.holder), this.newest)] : [],
      remainingMs: remainingMs === Infinity ? null : remainingMs,
    };
  }

  #nodeView({ voter, facts, error }: Testimony, ownerOf: (token: string) => string): NodeView {
    const node = voter.name;
    if (!facts) {
      return { node, held: null, error: messageOf(error) };
    }
    const quarantine = this.#electorate.quarantineOf(voter);
    const { first, waiterCount, shared } = facts;
    const holder = shared?.holders[0]?.token ?? facts.holder;
    const remainingMs = shared?.holders.at(-1)?.remainingMs ?? remainingOf(facts);
    return {
      node,
      held: holder !== "",
      ...(holder === ""
        ? {}
        : { owner: ownerOf(holder), ...(first === null ? {} : { fencingToken: first }) }),
      ...(remainingMs === null ? {} : { remainingMs }),
      waiterCount,
      ...(quarantine ? { error: quarantine.reason } : {}),
    };
  }

  /** Who waits, in order: in the queues of a majority, or with the votes of some nodes instead. */
  #waiting(): string[] {
    const seen = new Map<string, number>();
    for (const { facts } of this.#answered) {
      const holding = facts.shared?.holders.map(({ token }) => token) ?? [facts.holder];
      for (const token of new Set([...holding, ...facts.members.map(tokenOf)])) {
        seen.set(token, (seen.get(token) ?? 0) + 1);
      }
    }
    seen.delete("");
    seen.delete(this.holder);
    for (const { token } of this.shared?.holders ?? []) {
      seen.delete(token);
    }
    const { majority } = this.#electorate;
    const placeOf = (token: string): number => Number(token.slice(token.lastIndexOf(":") + 1));
    return [...seen.keys()]
      .filter((token) => (seen.get(token) ?? 0) >= majority)
      .sort((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1));
  }

  /** A client is known by each node that it has greeted: one of those that answered will know it. */
  async #ownersOf(tokens: readonly string[]): Promise<Map<string, string>> {
    const owners = new Map<string, string>();
    for (const { voter } of this.#answered) {
      const missing = [...new Set(tokens)].filter(
        (token) => token !== "" && (owners.get(token) ?? "unknown") === "unknown",
      );
      if (missing.length === 0) {
        break;
      }
      const told = await ownersOf(voter.node, missing).catch(() => []);
      told.forEach((owner, index) => owners.set(missing[index] ?? "", owner));
    }
    return owners;
  }

  get #answered(): Answered[] {
    return this.testimonies.filter((one): one is Answered => one.facts !== undefined);
  }

  /** What a majority says; undefined: they do not agree. */
  #mostTold<T>(told: readonly T[]): T | undefined {
    return told.find((one) => told.filter((other) => other === one).length >= this.#electorate.majority);
  }
}

function has({ holder, shared }: Facts, token: string): boolean {
  return holder === token || shared?.holders.some((one) => one.token === token) === true;
}

/** Whether a node's present grant, or one of them, has this number there. */
function gave(facts: Facts, fencingToken: bigint): boolean {
  if (facts.shared?.holders.some((holder) => holder.fencingToken === fencingToken) === true) {
    return true;
  }
  const newest = newestOf(facts);
  const isInBlock = newest !== null && newest <= fencingToken && fencingToken <= (facts.last ?? newest);
  return facts.holder !== "" && isInBlock;
}

/** Whether the holder of a node reported a later number of its lease. */
function isPast({ words }: Facts, fencingToken: bigint): boolean {
  const reported = words.get("number");
  return reported !== undefined && BigInt(reported) > fencingToken;
}

function testify(voter: Voter, keys: LockKeys): Promise<Testimony> {
  return new Promise((resolve) => {
    const failed = (error: unknown): void => resolve({ voter, facts: undefined, error });
    voter.node.perform({
      keys,
      args: withCandidate(["inspect"], noCandidate),
      answered: ({ value }) => {
        const answer = value as unknown[];
        if (answer[0] === "error") {
          failed(refusalBy(String(answer[1])));
        } else {
          resolve({ voter, facts: readFacts(answer), error: undefined });
        }
      },
      failed,
    });
  });
}

function noQuorum(key: string, testimonies: readonly Testimony[]): unknown {
  const [cause] = testimonies.map(({ error }) => error).filter((error) => error !== undefined);
  const kind = engineError(cause, key, "none");
  if (kind.code === "kind-mismatch") {
    return kind;
  }
  return new QuorumError({
    key,
    votes: testimonies.map(({ voter, facts, error }) => ({
      node: voter.name,
      vote: facts ? "held" : outcomeOf(error) === "unknown" ? "timeout" : "error",
      latencyMs: null,
      reason: facts ? null : messageOf(error),
    })),
    outcome: "none",
    retryable: true,
    cause,
  });
}
