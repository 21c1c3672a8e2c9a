import { QuorumError, type NodeVote } from "../../../../errors.ts";
import { messageOf, serverRefusal } from "../../server/errors.ts";
import type { LockKeys } from "../../protocol/keys.ts";
import { withProposedFence } from "../../protocol/operation.ts";
import type { NodeSet } from "../node-set.ts";
import type { QuorumLockView } from "./lock-view.ts";

/** How long the break removes dead waiters, ms. Later, the poll of a live waiter removes them. */
const breakTimeoutMs = 2_000;

/** The break of a lease, as the operator ordered it. */
export interface OrderedBreak {
  readonly fencingToken: bigint;
  readonly reason: string;
  /** The note and the audit of each node; undefined: no node writes a record. */
  readonly record: { readonly note: string; readonly auditKey: string } | undefined;
}

/**
 * Breaks the lease with this fencing token on every node that has the lease, whatever number the node gave. Each node that breaks the
 * lease writes its record in the same script.
 * @returns on how many nodes the break ended the lease. Rejects with a `QuorumError` if too few nodes reply.
 */
export async function breakOnNodes(
  nodeSet: NodeSet,
  view: QuorumLockView,
  keys: LockKeys,
  { fencingToken, reason, record }: OrderedBreak,
): Promise<number> {
  const grants = view.grantsOf(fencingToken);
  if (!grants) {
    return 0;
  }
  const { key } = view;
  const proposedFence = nodeSet.nextProposal();
  const votes = await Promise.all(
    grants.map(
      ({ node, name: grant }) =>
        new Promise<NodeVote>((resolve) => {
          const { server, name } = node;
          const failed = (error: unknown): void => {
            resolve({ node: name, vote: "error", latencyMs: null, reason: messageOf(error) });
          };
          server.perform({
            keys,
            args: withProposedFence(
              record
                ? ["recordedBreak", grant, server.channelKind, reason, record.note]
                : ["breakGrant", grant, server.channelKind, reason],
              proposedFence,
            ),
            auditKey: record?.auditKey,
            answered: ({ value }) => {
              const [isBroken, more] = value as unknown[];
              if (isBroken === "error") {
                failed(serverRefusal(String(more)));
                return;
              }
              if (Number(more) === 1) {
                // Dead waiters are queued before the live ones: the release of an unknown token removes them.
                const until = nodeSet.now() + breakTimeoutMs;
                node.releaseQueue.cleanUp({ key, keys, token: "-", queueArgs: "", until, proposedFence });
              }
              resolve({
                node: name,
                vote: Number(isBroken) === 1 ? "granted" : "held",
                latencyMs: null,
                reason: null,
              });
            },
            failed,
          });
        }),
    ),
  );
  const broken = votes.filter(({ vote }) => vote === "granted").length;
  const unknown = votes.filter(({ vote }) => vote === "error").length;
  if (broken < nodeSet.majority && broken + unknown >= nodeSet.majority) {
    throw new QuorumError({ key, votes, outcome: "unknown", retryable: true });
  }
  return broken;
}
