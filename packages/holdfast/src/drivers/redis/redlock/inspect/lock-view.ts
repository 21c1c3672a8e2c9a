import { QuorumError } from "../../../../errors.ts";
import { engineError, isTransient, messageOf, outcomeOf, serverRefusal } from "../../server/errors.ts";
import {
  holderOf,
  holdsWith,
  lastFence,
  type LockSnapshot,
  newestFence,
  ownersByClient,
  parseSnapshot,
  remainingOf,
  reportedLast,
  type SharedHolderEntry,
  sharedHolderOf,
  type SharedLockSnapshot,
  tokenOf,
} from "../../server/lock-snapshot.ts";
import type { LockKeys } from "../../protocol/keys.ts";
import { noProposal, withProposedFence } from "../../protocol/operation.ts";
import type { QuorumNode } from "../quorum-node.ts";
import {
  type FenceState,
  localWaitersOf,
  lockState,
  type LockState,
  type NodeView,
  waitTimes,
} from "../../../../lock-state.ts";
import { newestMetadata } from "../../protocol/metadata.ts";
import { majorityReached } from "../majority.ts";
import type { NodeSet } from "../node-set.ts";
import { ticketOf } from "../../protocol/token.ts";

/** The reply of one node to `inspect`, or why there is none. */
interface NodeReply {
  readonly node: QuorumNode;
  readonly snapshot: LockSnapshot | undefined;
  readonly error: unknown;
}

type AnsweredReply = NodeReply & { readonly snapshot: LockSnapshot };

function queryNode(node: QuorumNode, keys: LockKeys): Promise<NodeReply> {
  return new Promise((resolve) => {
    const failed = (error: unknown): void => resolve({ node, snapshot: undefined, error });
    node.server.perform({
      keys,
      args: withProposedFence(["inspect"], noProposal),
      answered: ({ value }) => {
        const answer = value as unknown[];
        if (answer[0] === "error") {
          failed(serverRefusal(String(answer[1])));
        } else {
          resolve({ node, snapshot: parseSnapshot(answer), error: undefined });
        }
      },
      failed,
    });
  });
}

function readQuorumNotReached(key: string, replies: readonly NodeReply[]): unknown {
  const [cause] = replies.map(({ error }) => error).filter((error) => error !== undefined);
  const kind = engineError(cause, key, "none");
  if (kind.code === "kind-mismatch") {
    return kind;
  }
  return new QuorumError({
    key,
    votes: replies.map(({ node, snapshot, error }) => ({
      node: node.name,
      vote: snapshot ? "held" : outcomeOf(error) === "unknown" ? "timeout" : "error",
      latencyMs: null,
      reason: snapshot ? null : messageOf(error),
    })),
    outcome: "none",
    retryable: true,
    cause,
  });
}

/** The holders of a shared lock, by a majority of the nodes. */
class SharedView {
  readonly kind: SharedLockSnapshot["kind"];
  readonly limit: number;
  readonly holders: readonly SharedHolderEntry[];

  private constructor({ kind, limit }: SharedLockSnapshot, holders: readonly SharedHolderEntry[]) {
    this.kind = kind;
    this.limit = limit;
    this.holders = holders;
  }

  /** Undefined: no node reports a shared lock. */
  static of(answered: readonly LockSnapshot[], majority: number): SharedView | undefined {
    const reported = answered.map(({ shared }) => shared).filter((shared) => shared !== undefined);
    const [first] = reported;
    const tokens = new Set(reported.flatMap(({ holders }) => holders.map(({ token }) => token)));
    const holders = [...tokens].flatMap((token) => {
      const grants = reported.flatMap((snapshot) =>
        snapshot.holders.filter((holder) => holder.token === token),
      );
      const holder = merged(grants, majority);
      return holder ? [holder] : [];
    });
    return first && new SharedView(first, holders);
  }

  /** @param nowMs the servers' clock, ms since 1970 */
  describe(
    ownerOf: (token: string) => string,
    nowMs: number,
  ): Pick<LockState, "kind" | "limit" | "holders" | "remainingMs"> {
    const { kind, limit } = this;
    const holders = this.holders.map((holder) => sharedHolderOf(kind, holder, ownerOf(holder.token), nowMs));
    const remaining = holders.map(({ remainingMs = 0 }) => remainingMs);
    return { kind, limit, holders, remainingMs: remaining.length === 0 ? null : Math.max(...remaining) };
  }
}

/** The holder by all nodes; undefined: less than a majority has the holder. Of different numbers, the most reported is the lease's. */
function merged(grants: readonly SharedHolderEntry[], majority: number): SharedHolderEntry | undefined {
  const [snapshot] = grants;
  const remainingMs = majorityReached(
    grants.map((grant) => grant.remainingMs),
    majority,
  );
  if (!snapshot || remainingMs === undefined) {
    return undefined;
  }
  const times = (number: bigint): number =>
    grants.filter(({ fencingToken }) => fencingToken === number).length;
  const { fencingToken } = grants.reduce((best, other) =>
    times(other.fencingToken) > times(best.fencingToken) ? other : best,
  );
  const weight = majorityReached(
    grants.map((grant) => grant.weight),
    majority,
  );
  const info = newestMetadata(grants.map((grant) => grant.info));
  return { ...snapshot, fencingToken, remainingMs, weight: weight ?? snapshot.weight, info };
}

const pauseMs = 50;

/** The state of one lock by the reply of each node, and by the majority. */
export class QuorumLockView {
  readonly key: string;
  readonly replies: readonly NodeReply[];
  /** The token that holds the lock on a majority; "": none. */
  readonly holder: string;
  /** The state of a shared lock; undefined: the lock is a mutex. */
  readonly shared: SharedView | undefined;
  readonly #nodeSet: NodeSet;
  /** The replies of nodes that may vote. */
  readonly #counted: readonly AnsweredReply[];

  private constructor(nodeSet: NodeSet, key: string, replies: readonly NodeReply[]) {
    this.#nodeSet = nodeSet;
    this.key = key;
    this.replies = replies;
    // After all replies, because the last reply may show that the clocks agree again, as after a suspension of the machine.
    this.#counted = this.#answered.filter(({ node }) => !nodeSet.quarantineOf(node));
    const holders = this.#counted.map(({ snapshot }) => snapshot.holder);
    this.holder = this.#mostReported(holders.filter((holder) => holder !== "")) ?? "";
    this.shared = SharedView.of(
      this.#counted.map(({ snapshot }) => snapshot),
      nodeSet.majority,
    );
  }

  /**
   * Requests the lock's state from all nodes, and repeats that until the replies are enough. Rejects with a `QuorumError` if they are
   * not enough within `budgetMs`, as when less than a majority replies.
   */
  static async of(
    nodeSet: NodeSet,
    key: string,
    keys: LockKeys,
    budgetMs: number,
    isEnough: (view: QuorumLockView) => boolean = () => true,
  ): Promise<QuorumLockView> {
    const endsAt = nodeSet.now() + budgetMs;
    for (;;) {
      try {
        const view = await QuorumLockView.#query(nodeSet, key, keys);
        if (!isEnough(view)) {
          throw readQuorumNotReached(key, view.replies);
        }
        return view;
      } catch (error) {
        if (!isTransient(error) || nodeSet.now() + pauseMs > endsAt) {
          throw error;
        }
        await nodeSet.pause(pauseMs); // a slow node answers the next request at once, or not at all
      }
    }
  }

  static async #query(nodeSet: NodeSet, key: string, keys: LockKeys): Promise<QuorumLockView> {
    const replies = await Promise.all(nodeSet.nodes.map((node) => queryNode(node, keys)));
    if (replies.filter(({ snapshot }) => snapshot !== undefined).length < nodeSet.majority) {
      throw readQuorumNotReached(key, replies);
    }
    return new QuorumLockView(nodeSet, key, replies);
  }

  /** The nodes that have the holder of the majority; of a shared lock, the first holder. */
  get holding(): readonly AnsweredReply[] {
    const holder = this.holder === "" ? this.shared?.holders[0]?.token : this.holder;
    return holder === undefined ? [] : this.#answered.filter(({ snapshot }) => has(snapshot, holder));
  }

  /** The nodes that have the lease with this number, and the name of the grant on each; undefined: there is no such lease now. */
  grantsOf(
    fencingToken: bigint,
  ): readonly { readonly node: QuorumNode; readonly name: string }[] | undefined {
    const sharing = this.shared?.holders.find((holder) => holder.fencingToken === fencingToken);
    if (sharing) {
      const { token } = sharing;
      return this.#answered
        .filter(({ snapshot }) => has(snapshot, token))
        .map(({ node }) => ({ node, name: token }));
    }
    const { newest, holding } = this;
    if (this.holder === "" || newest === null || fencingToken < newest) {
      return undefined;
    }
    const reported =
      holding.find(({ snapshot }) => newestFence(snapshot) === newest)?.snapshot.last ?? newest;
    return fencingToken > reported
      ? undefined
      : holding.map(({ node, snapshot }) => ({ node, name: String(snapshot.first ?? 0) }));
  }

  /** Whether a majority may have a lease with this number now, if the nodes without a counted reply have it. */
  isUnresolved(fencingToken: bigint): boolean {
    const { majority, nodes } = this.#nodeSet;
    const reporting = this.#counted.filter(({ snapshot }) => issued(snapshot, fencingToken)).length;
    const missing = nodes.length - this.#counted.length;
    return this.grantsOf(fencingToken) === undefined && reporting + missing >= majority;
  }

  /** The fencing token of the current lease, by a majority; of a free lock, of the last lease. */
  get newest(): bigint | null {
    const reported = this.holder === "" ? this.#counted : this.holding; // a shared lock has the number of its last grant
    const numbers = reported.map(({ snapshot }) => newestFence(snapshot)).filter((number) => number !== null);
    return this.#mostReported(numbers) ?? null;
  }

  /** Whether the lease with this number holds the key: a majority has the token of the lease, and gave the number. */
  compareFence(fencingToken: bigint): FenceState {
    const { majority } = this.#nodeSet;
    const sharing = this.#counted.flatMap(
      ({ snapshot }) =>
        snapshot.shared?.holders.find((holder) => holdsWith(holder, fencingToken))?.token ?? [],
    );
    const holding = this.#counted.filter(
      ({ snapshot }) => this.holder !== "" && snapshot.holder === this.holder,
    );
    const issuing = holding.filter(({ snapshot }) => issued(snapshot, fencingToken));
    if (this.#mostReported(sharing) !== undefined) {
      return "current";
    } else if (
      issuing.length < majority ||
      holding.some(({ snapshot }) => wasHandedOver(snapshot, fencingToken))
    ) {
      return "stale";
    }
    // The process itself knows its last number, so one node with its report is enough.
    if (issuing.some(({ snapshot }) => reportedLast(snapshot.info) === fencingToken)) {
      return "current";
    }
    // A restored node has the token with another range, and knows the number from a renewal.
    const blocks = issuing.filter(
      ({ snapshot }) => snapshot.first !== null && snapshot.first <= fencingToken,
    );
    const isLast = blocks.length > 0 && blocks.every(({ snapshot }) => snapshot.last === fencingToken);
    return isLast ? "current" : "unknown";
  }

  async describe(): Promise<LockState> {
    const waiting = this.#queuedEntries();
    const shown = waiting.slice(0, 100);
    const sharing = this.shared?.holders.map(({ token }) => token) ?? [];
    const held = this.#answered.map(({ snapshot }) => snapshot.holder);
    const owners = await this.#ownersOf([...held, this.holder, ...sharing, ...shown]);
    const ownerOf = (token: string): string => owners.get(token) ?? "unknown";
    const counts = this.#counted.map(({ snapshot }) => snapshot.waiterCount);
    const { majority } = this.#nodeSet;
    const nowMs = this.#nodeSet.micros() / 1000;
    const described = this.shared?.describe(ownerOf, nowMs) ?? this.#describeMutex(ownerOf, nowMs);
    const waiterCount = Math.max(shown.length, majorityReached(counts, majority) ?? 0);
    return lockState({
      key: this.key,
      ...described,
      waiters: shown.map((token, position) => {
        return { owner: ownerOf(token), position, ...waitTimes(ticketOf(token), nowMs) };
      }),
      waiterCount: waiterCount + localWaitersOf(described.holders),
      fencingToken: this.newest,
      nodes: this.replies.map((reply) => this.#nodeView(reply, ownerOf)),
    });
  }

  #describeMutex(
    ownerOf: (token: string) => string,
    nowMs: number,
  ): Pick<LockState, "kind" | "limit" | "holders" | "remainingMs"> {
    const [one] = this.holder === "" ? [] : this.holding;
    const remaining = this.holding.map(({ snapshot }) => remainingOf(snapshot) ?? Infinity);
    const remainingMs = majorityReached(remaining, this.#nodeSet.majority) ?? Infinity;
    const snapshot = one && {
      ...one.snapshot,
      remainingMs: remainingMs === Infinity ? -1 : remainingMs,
      info: newestMetadata(this.holding.map((answered) => answered.snapshot.info)),
    };
    return {
      kind: "mutex",
      limit: 1,
      holders: snapshot ? [holderOf(snapshot, ownerOf(this.holder), this.newest, nowMs)] : [],
      remainingMs: remainingMs === Infinity ? null : remainingMs,
    };
  }

  #nodeView({ node: quorumNode, snapshot, error }: NodeReply, ownerOf: (token: string) => string): NodeView {
    const node = quorumNode.name;
    if (!snapshot) {
      return { node, held: null, error: messageOf(error) };
    }
    const quarantine = this.#nodeSet.quarantineOf(quorumNode);
    const { first, waiterCount, shared } = snapshot;
    const holder = shared?.holders[0]?.token ?? snapshot.holder;
    const remainingMs = shared?.holders.at(-1)?.remainingMs ?? remainingOf(snapshot);
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

  /** The waiting tokens in order: on a majority, a token has a queue entry or the vote of the node. */
  #queuedEntries(): string[] {
    const seen = new Map<string, number>();
    for (const { snapshot } of this.#answered) {
      const holding = snapshot.shared?.holders.map(({ token }) => token) ?? [snapshot.holder];
      for (const token of new Set([...holding, ...snapshot.queueEntries.map(tokenOf)])) {
        seen.set(token, (seen.get(token) ?? 0) + 1);
      }
    }
    seen.delete("");
    seen.delete(this.holder);
    for (const { token } of this.shared?.holders ?? []) {
      seen.delete(token);
    }
    const { majority } = this.#nodeSet;
    return [...seen.keys()]
      .filter((token) => (seen.get(token) ?? 0) >= majority)
      .sort((a, b) => ticketOf(a) - ticketOf(b) || (a < b ? -1 : 1));
  }

  /** A client is known to each node with which it had its handshake: one of the replying nodes should know the client. */
  async #ownersOf(tokens: readonly string[]): Promise<Map<string, string>> {
    const owners = new Map<string, string>();
    for (const { node } of this.#answered) {
      const missing = [...new Set(tokens)].filter(
        (token) => token !== "" && (owners.get(token) ?? "unknown") === "unknown",
      );
      if (missing.length === 0) {
        break;
      }
      const reported = await ownersByClient(node.server, missing).catch(() => []);
      reported.forEach((owner, index) => owners.set(missing[index] ?? "", owner));
    }
    return owners;
  }

  get #answered(): AnsweredReply[] {
    return this.replies.filter((one): one is AnsweredReply => one.snapshot !== undefined);
  }

  /** The value that a majority reports; undefined: there is none. */
  #mostReported<T>(reported: readonly T[]): T | undefined {
    return reported.find((one) => reported.filter((other) => other === one).length >= this.#nodeSet.majority);
  }
}

function has({ holder, shared }: LockSnapshot, token: string): boolean {
  return holder === token || shared?.holders.some((one) => one.token === token) === true;
}

/** Whether a current grant of the node has this number. */
function issued(snapshot: LockSnapshot, fencingToken: bigint): boolean {
  if (snapshot.shared?.holders.some((holder) => holder.fencingToken === fencingToken) === true) {
    return true;
  }
  const newest = newestFence(snapshot);
  const isInBlock =
    newest !== null && newest <= fencingToken && fencingToken <= (lastFence(snapshot) ?? newest);
  return snapshot.holder !== "" && isInBlock;
}

/** Whether the holder reported a later number of its lease, after a hand-over within its process. */
function wasHandedOver({ info }: LockSnapshot, fencingToken: bigint): boolean {
  const reported = info.get("number");
  return reported !== undefined && BigInt(reported) > fencingToken;
}
