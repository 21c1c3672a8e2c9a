import type { Clock } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import type { ExtendResult } from "../../../driver.ts";
import type { NodeVote } from "../../../errors.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import type { Reply } from "../protocol/operation.ts";
import { lossReasonOf } from "../protocol/metadata.ts";
import { Broadcast } from "./broadcast.ts";
import type { ClockReading } from "./clock-agreement.ts";
import { countedVote } from "./vote.ts";
import type { HeldGrant } from "./held-grant.ts";
import { validityOf } from "./majority.ts";
import type { NodeSet } from "./node-set.ts";
import type { QuorumNode } from "./quorum-node.ts";

export interface RenewalHost {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly driftFactor: number;
}

/**
 * Extends a grant on a majority of all nodes. Only nodes count that have had the grant without interruption since the last confirmed
 * majority. Nodes without the grant are refilled after the confirmation, and count from the next extension on.
 */
export async function extendGrant(
  host: RenewalHost,
  grant: HeldGrant,
  { ttlMs, info, fencingToken }: { ttlMs: number; info: string; fencingToken: bigint },
): Promise<ExtendResult> {
  if (grant.isLost) {
    return { outcome: "lost", reason: grant.members.lossReason };
  }
  grant.numbers ??= { first: Number(fencingToken), last: Number(fencingToken) };
  return new Renewal(host, grant, ttlMs).run(info, fencingToken);
}

/** One extension of a grant on all nodes. */
class Renewal {
  readonly #host: RenewalHost;
  readonly #grant: HeldGrant;
  readonly #ttlMs: number;
  readonly #startedAt: number;
  /** By confirming node, in the order of {@link #nodes}. */
  readonly #validities: Validity[] = [];
  /** The nodes that confirmed. */
  readonly #nodes: QuorumNode[] = [];
  readonly #refilled = new Set<QuorumNode>();
  /** The outcome was reported as unknown. */
  #isAbandoned = false;
  /** The votes were published. */
  #isPublished = false;
  #isConfirmed = false;
  readonly #afterConfirm: (() => void)[] = [];

  constructor(host: RenewalHost, grant: HeldGrant, ttlMs: number) {
    this.#host = host;
    this.#grant = grant;
    this.#ttlMs = ttlMs;
    this.#startedAt = host.clock.now();
  }

  run(info: string, fencingToken: bigint): Promise<ExtendResult> {
    const { nodeSet } = this.#host;
    const { token, members } = this.#grant;
    const number = Math.max(Number(fencingToken), ...members.numbers); // a node that did not agree has a greater number
    const args = ["extend", token, String(this.#ttlMs), info, String(number)];
    const broadcast = new Broadcast<ExtendResult>(this.#grant, nodeSet.nodes, nodeSet.nextProposal(), args);
    return broadcast.run(
      (node, reply, reading) => this.#answered(node, reply, reading),
      (isComplete) => this.#decide(isComplete, broadcast),
    );
  }

  #answered(node: QuorumNode, reply: Reply, reading: ClockReading): NodeVote["vote"] {
    const grant = this.#grant;
    const [status, first] = reply.value as unknown[];
    if (Number(status) === 0 && !grant.isDowngraded && !this.#refilled.has(node)) {
      this.#refilled.add(node);
      this.#afterConfirmation(() => grant.refill(node, this.#ttlMs, reading));
    }
    if (this.#host.nodeSet.quarantineOf(node, reading)) {
      return "quarantined"; // neither held nor lost, because the node cannot vote for others either
    } else if (Number(status) !== 1) {
      grant.members.grantMissing(node, lossReasonOf(status), reply);
    } else if (grant.members.isUnbroken(node, Number(first), reply, this.#startedAt)) {
      this.#validities.push(validFrom(reply.sent, this.#ttlMs, 0, this.#host.driftFactor));
      this.#nodes.push(node);
    } else {
      this.#afterConfirmation(() => grant.join(node, Number(first), reply, reading));
    }
    return Number(status) === 1 ? "granted" : "held";
  }

  #decide(isComplete: boolean, broadcast: Broadcast<ExtendResult>): ExtendResult | undefined {
    const { nodeSet, clock } = this.#host;
    const grant = this.#grant;
    if (this.#validities.length >= nodeSet.majority) {
      const validity = validityOf(this.#validities, nodeSet.majority);
      if (remainingValidityMs(validity, clock) > 0) {
        grant.validUntil = Math.max(grant.validUntil, validity.until);
        this.#confirm(); // an extension that has expired before its last reply confirms nothing
      }
      this.#publishExtended();
      if (this.#isAbandoned) {
        grant.confirmedLate = validity;
      }
      return { outcome: "extended", validity };
    }
    if (grant.isLost) {
      return { outcome: "lost", reason: grant.members.lossReason };
    }
    if (!isComplete || this.#isAbandoned) {
      return undefined;
    }
    const late = grant.confirmedLate;
    if (late && remainingValidityMs(late, clock) > 0) {
      grant.confirmedLate = undefined;
      return { outcome: "extended", validity: late };
    }
    this.#isAbandoned = true;
    return { outcome: "unknown", error: broadcast.error(grant.key) };
  }

  /** Publishes the extension once, although replies may still arrive after the majority. */
  #publishExtended(): void {
    if (this.#isPublished) {
      return;
    }
    this.#isPublished = true;
    const { key, numbers, members, wasAcquiredHere } = this.#grant;
    publish("extended", () => ({
      key,
      fencingToken: wasAcquiredHere && numbers !== undefined ? BigInt(numbers.first) : undefined,
      votes: this.#nodes.map((node, index) => {
        const runId = members.of(node)?.runId ?? node.guard.runId ?? "";
        const validity = this.#validities[index] as Validity;
        return countedVote(node, { runId, isNotified: false, validity }, this.#host.clock);
      }),
    }));
  }

  /** Runs the action once a majority has confirmed the extension. */
  #afterConfirmation(action: () => void): void {
    if (this.#isConfirmed) {
      action();
    } else {
      this.#afterConfirm.push(action);
    }
  }

  #confirm(): void {
    this.#isConfirmed = true;
    for (const action of this.#afterConfirm.splice(0)) {
      action();
    }
  }
}
