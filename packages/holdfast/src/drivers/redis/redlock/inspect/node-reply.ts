import { QuorumError } from "../../../../errors.ts";
import { engineError, messageOf, outcomeOf, serverRefusal } from "../../server/errors.ts";
import { parseSnapshot, type LockSnapshot } from "../../server/lock-snapshot.ts";
import type { LockKeys } from "../../protocol/keys.ts";
import { noProposal, withProposedFence } from "../../protocol/operation.ts";
import type { QuorumNode } from "../quorum-node.ts";

/** The reply of one node to `inspect`, or why there is none. */
export interface NodeReply {
  readonly node: QuorumNode;
  readonly snapshot: LockSnapshot | undefined;
  readonly error: unknown;
}

export type AnsweredReply = NodeReply & { readonly snapshot: LockSnapshot };

export function queryNode(node: QuorumNode, keys: LockKeys): Promise<NodeReply> {
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

export function quorumNotReached(key: string, replies: readonly NodeReply[]): unknown {
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
