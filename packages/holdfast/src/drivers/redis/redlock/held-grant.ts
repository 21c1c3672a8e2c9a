import type { Clock } from "../../../runtime/clock.ts";
import type { Scheduled } from "../../../runtime/timer-queue.ts";
import type { Validity } from "../../../validity.ts";
import { RequestHistory } from "../server/request-history.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { withProposedFence, type Reply } from "../protocol/operation.ts";
import { queueEntryExpiry, type EarlierRequests } from "../server/releases.ts";
import { readingOf, type ClockReading } from "./clock-agreement.ts";
import { GrantMembers } from "./grant-members.ts";
import type { FencingRange } from "./majority.ts";
import type { NodeSet } from "./node-set.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { quarantineMessage } from "./restart-guard.ts";
import { type AttemptResidue, countsFrom } from "./vote.ts";

export interface HeldGrantHost {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly driftFactor: number;
  /** The node may have residue of a grant that has ended. */
  readonly cleanUp: (held: HeldGrant, node: QuorumNode) => void;
}

interface HeldGrantOptions {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  /** Of the elected attempt; undefined: another process acquired the grant, and its residue is unknown here. */
  readonly residue: AttemptResidue | undefined;
}

/** A grant of a quorum: the nodes that have the grant, and what may be left of the grant on each node. */
export class HeldGrant implements Scheduled {
  dueAt = 0;
  slot = -1;
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly members: GrantMembers;
  readonly #host: HeldGrantHost;
  readonly #residue: AttemptResidue | undefined;
  /** The refill requests, by node. */
  readonly #refills: (RequestHistory | undefined)[] = [];
  /** A majority confirmed an extension after its outcome was reported as unknown: the next extension reports it. */
  confirmedLate: Validity | undefined;
  #isKnown: boolean;
  isEnded = false;
  /** The token would be granted a writer's vote again, so that no node may be refilled. */
  isDowngraded = false;
  /** The lease's own fencing numbers; undefined: another process acquired the grant, and no extension followed here yet. */
  numbers: FencingRange | undefined;
  /** The end of the validity that a majority confirmed last, on the scale of `clock.now()`. */
  validUntil: number = -Infinity;

  constructor(host: HeldGrantHost, { key, keys, token, residue }: HeldGrantOptions) {
    this.#host = host;
    this.key = key;
    this.keys = keys;
    this.token = token;
    this.members = new GrantMembers(host.nodeSet, host.clock);
    this.#residue = residue;
    this.#isKnown = residue !== undefined;
  }

  get wasAcquiredHere(): boolean {
    return this.#residue !== undefined;
  }

  /** Whether this process knows which nodes have the grant: it acquired the grant, or verified it on a majority. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  get isLost(): boolean {
    return this.members.isLost;
  }

  now(): number {
    return this.#host.clock.now();
  }

  /** A majority has the grant, until this moment on the scale of `clock.now()`. */
  verified(until: number): void {
    this.#isKnown = true;
    this.validUntil = Math.max(this.validUntil, until);
  }

  /** The grant's queue entry on a node, without the token. A node that voted late may still have the queue entry. */
  entryTailOn(node: QuorumNode): string {
    return this.#residue?.queueEntryOn(node) ?? "";
  }

  /**
   * When a node has dropped the grant and its queue entry, which does not expire with the grant.
   * @param until the end of the grant
   */
  residueExpiry(node: QuorumNode, until: number): number {
    const mayBeQueued = this.#residue?.nodes[node.index]?.mayBeQueued ?? false;
    return mayBeQueued ? Math.max(until, queueEntryExpiry(this.now(), Infinity)) : until;
  }

  /** The vote and refill requests that a node may still execute; undefined: none. */
  earlierRequestsOn({ index }: QuorumNode): EarlierRequests | undefined {
    const [votes, refills] = [this.#residue?.nodes[index]?.history, this.#refills[index]];
    if (votes === undefined || votes.latest === 0) {
      return refills !== undefined && refills.latest > 0 ? refills : undefined;
    }
    return refills === undefined || refills.latest === 0 ? votes : new BothHistories(votes, refills);
  }

  /** Whether a node may have the grant or its queue entry. */
  mayBeStoredOn(node: QuorumNode): boolean {
    return this.#residue?.nodes[node.index]?.mayExist ?? true;
  }

  /** Why a node's reply does not count. */
  quarantineReason(node: QuorumNode, reading: ClockReading): string | null {
    const quarantine = this.#host.nodeSet.quarantineOf(node, reading);
    return quarantine ? quarantineMessage(quarantine) : null;
  }

  /** A node has the grant again, or voted late: the node counts from the next extension on. */
  join(node: QuorumNode, first: number, reply: Reply, reading: ClockReading, since?: number): void {
    const member = this.members.of(node);
    if (!this.isEnded && !this.isLost && !this.#host.nodeSet.quarantineOf(node, reading) && !member) {
      this.members.add(node, first, reply.runId, since);
    }
  }

  /**
   * Writes the grant to a node that lacks it. Call this only after a majority confirmed the grant, and before the release, which may be
   * the only end of the refilled grant. A node that executes the request after the end of the lease does nothing.
   * @param clockThen the node's clock, from its reply that it lacks the grant
   */
  refill(node: QuorumNode, ttlMs: number, clockThen: ClockReading): void {
    if (this.isEnded || this.numbers === undefined) {
      return;
    }
    const { nodeSet, clock, driftFactor } = this.#host;
    const entryTail = this.entryTailOn(node);
    this.#residue?.nodes[node.index]?.add();
    const { keys, numbers } = this;
    const latest = Math.floor(this.validUntil + clockThen.minMs);
    const block = [String(numbers.first), String(numbers.last)];
    const args = ["refill", this.token, entryTail, String(ttlMs), ...block, String(latest)];
    const history = (this.#refills[node.index] ??= new RequestHistory());
    history.sent(latest);
    node.server.perform({
      keys,
      args: withProposedFence(args, nodeSet.nextProposal()),
      answered: (reply) => {
        history.answered(reply.sameConnection);
        const [status, first, , , waitMs] = reply.value as unknown[];
        if (Number(status) !== 1) {
          return;
        }
        if (this.isEnded || this.isLost) {
          this.#host.cleanUp(this, node);
        } else {
          const now = clock.now();
          const reading = readingOf(reply.serverMicros, reply.sent.now, now);
          const since = countsFrom(now, Number(waitMs ?? 0), driftFactor);
          this.join(node, Number(first), reply, reading, since);
        }
      },
      failed: (error) => history.failed(error),
    });
  }
}

/** The vote requests and the refill requests of one node. */
class BothHistories implements EarlierRequests {
  readonly #votes: RequestHistory;
  readonly #refills: RequestHistory;

  constructor(votes: RequestHistory, refills: RequestHistory) {
    this.#votes = votes;
    this.#refills = refills;
  }

  get latest(): number {
    return Math.max(this.#votes.latest, this.#refills.latest);
  }
}
