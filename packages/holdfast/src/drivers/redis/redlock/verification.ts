import type { VerifyResult } from "../../../driver.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import { lossReasonOf } from "../protocol/metadata.ts";
import { noProposal } from "../protocol/operation.ts";
import { Broadcast } from "./broadcast.ts";
import type { HeldGrant } from "./held-grant.ts";
import { validityOf } from "./majority.ts";
import type { RenewalHost } from "./renewal.ts";

/**
 * Requests from all nodes whether a majority has the grant. For a grant of another process, the replies show which nodes have it. A node
 * with a greater number than the lease's does not count, because a late request got that grant. Another client may have held the lock
 * before.
 */
export function verifyGrant(
  { nodeSet, clock, driftFactor }: RenewalHost,
  grant: HeldGrant,
  fencingToken?: bigint,
): Promise<VerifyResult> {
  const { majority, nodes } = nodeSet;
  const startedAt = clock.now();
  const isNew = !grant.isKnown;
  const held: Validity[] = [];
  let hasUnknownEnd = false;
  const broadcast = new Broadcast<VerifyResult>(grant, nodes, noProposal, ["verify", grant.token]);
  return broadcast.run(
    (node, reply, reading) => {
      const [status, remainingMs, first] = reply.value as unknown[];
      if (nodeSet.quarantineOf(node, reading)) {
        return "quarantined";
      }
      const isLater = isNew && fencingToken !== undefined && Number(first) > fencingToken;
      if (Number(status) !== 1 || isLater) {
        grant.members.grantMissing(node, isLater ? "expired" : lossReasonOf(status), reply);
        return "held";
      }
      if (isNew) {
        grant.members.add(node, Number(first), reply.runId);
      }
      if (isNew || grant.members.isUnbroken(node, Number(first), reply, startedAt)) {
        hasUnknownEnd ||= Number(remainingMs) === -1;
        held.push(validFrom(reply.sent, Math.max(0, Number(remainingMs)), 0, driftFactor));
      }
      return "granted";
    },
    (isComplete) => {
      const validity = held.length < majority ? undefined : validityOf(held, majority);
      // The remaining nodes may have the grant for longer. Their replies are awaited if the validity is too short for a renewal, which
      // takes as long as this verification did. The replies are also awaited if the validity is much shorter than the grant of one node,
      // because another node may have only a claim.
      const restMs = validity ? remainingValidityMs(validity, clock) : 0;
      const maxRemainingMs = Math.max(0, ...held.map((one) => remainingValidityMs(one, clock)));
      const isEnough = restMs > 2 * (clock.now() - startedAt) && restMs > maxRemainingMs / 2;
      if (validity && (isComplete || isEnough)) {
        grant.verified(validity.until);
        return { outcome: "valid", validity, hasUnknownEnd };
      }
      if (grant.isLost) {
        return { outcome: "lost", reason: grant.members.lossReason };
      }
      if (isComplete) {
        throw broadcast.error(grant.key);
      }
      return undefined;
    },
  );
}
