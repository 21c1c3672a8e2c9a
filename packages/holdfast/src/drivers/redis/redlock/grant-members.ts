import type { Clock } from "../../../runtime/clock.ts";
import type { LossReason } from "../../../errors.ts";
import type { Reply } from "../protocol/operation.ts";
import type { NodeSet } from "./node-set.ts";
import type { QuorumNode } from "./quorum-node.ts";

/** A node that has had the grant without interruption since the node was counted. */
interface Member {
  /** The first fencing number of the grant on the node: a grant with another number is another grant. */
  readonly first: number;
  readonly runId: string;
  /** From when on the node counts, on the scale of `clock.now()`. */
  readonly since: number;
}

/** The nodes that have one grant, and whether the grant is lost because too few nodes have it. */
export class GrantMembers {
  readonly #nodeSet: NodeSet;
  readonly #clock: Clock;
  /** By node. */
  readonly #members: (Member | undefined)[] = [];
  /** The nodes without the grant, and the reason. */
  readonly #withoutGrant = new Map<QuorumNode, LossReason>();
  #isLost = false;

  constructor(nodeSet: NodeSet, clock: Clock) {
    this.#nodeSet = nodeSet;
    this.#clock = clock;
  }

  /** At some time, no majority had the grant. A loss is final, because others may have held the lock since. */
  get isLost(): boolean {
    return this.#isLost;
  }

  get lossReason(): LossReason {
    const reasons = [...this.#withoutGrant.values()];
    return (["broken", "stolen"] as const).find((reason) => reasons.includes(reason)) ?? "expired";
  }

  /** The first fencing number of each member. */
  get numbers(): readonly number[] {
    return this.#members.flatMap((member) => (member ? [member.first] : []));
  }

  of(node: QuorumNode): Member | undefined {
    return this.#members[node.index];
  }

  /** The node's vote counts for the grant. A known member with the same grant keeps its own `since`. */
  add(node: QuorumNode, first: number, runId: string, since: number = this.#clock.now()): void {
    const known = this.#members[node.index];
    if (known?.first !== first || known.runId !== runId) {
      this.#members[node.index] = { first, runId, since };
    }
    this.#withoutGrant.delete(node);
  }

  /** The node ended the grant. @returns whether the grant is lost */
  end(node: QuorumNode, reason: LossReason): boolean {
    this.#members[node.index] = undefined;
    this.#withoutGrant.set(node, reason);
    const { majority, nodes } = this.#nodeSet;
    this.#isLost ||= nodes.length - this.#withoutGrant.size < majority;
    return this.#isLost;
  }

  /** A reply shows that the node lacks the grant. A reply to a request from before the membership shows nothing about it. */
  grantMissing(node: QuorumNode, reason: LossReason, reply: Reply): void {
    const member = this.#members[node.index];
    if (!member || member.since <= reply.sent.now) {
      this.end(node, reason);
    }
  }

  /** Whether the node has had this grant since `startedAt`. A node with another grant, or another run, is no member any longer. */
  isUnbroken(node: QuorumNode, first: number, reply: Reply, startedAt: number): boolean {
    const member = this.#members[node.index];
    if (!member || member.since > startedAt) {
      return false;
    }
    const isSameRun = member.runId === reply.runId || node.guard.hasKept(member.runId);
    if (member.first === first && isSameRun) {
      return true;
    }
    this.#members[node.index] = undefined;
    return false;
  }
}
