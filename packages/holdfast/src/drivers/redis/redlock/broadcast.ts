import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf, serverRefusal } from "../server/errors.ts";
import { withProposedFence, type Operation, type Reply } from "../protocol/operation.ts";
import { readingOf, type ClockReading } from "./clock-agreement.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { QuorumNode } from "./quorum-node.ts";

/** The grant that is the subject of a broadcast. */
interface BroadcastGrant {
  readonly keys: LockKeys;
  now(): number;
  quarantineReason(node: QuorumNode, reading: ClockReading): string | null;
}

/** One operation on one grant, sent to all nodes, and decided as soon as the replies allow. */
export class Broadcast<Result> {
  readonly #grant: BroadcastGrant;
  readonly #nodes: readonly QuorumNode[];
  readonly #args: readonly string[];
  readonly #votes: NodeVote[];
  readonly #errors: unknown[] = [];
  /** Counts the reply of a node in quarantine again, because the next reply of any node may end the quarantine. */
  readonly #uncounted = new Map<QuorumNode, () => void>();
  #replyCount = 0;

  constructor(
    grant: BroadcastGrant,
    nodes: readonly QuorumNode[],
    proposedFence: string,
    args: readonly string[],
  ) {
    this.#grant = grant;
    this.#nodes = nodes;
    this.#args = withProposedFence(args, proposedFence);
    this.#votes = nodes.map(({ name }) => ({
      node: name,
      vote: "timeout",
      latencyMs: null,
      reason: "no reply yet",
    }));
  }

  /**
   * @param answered the vote of a node by its reply. Called also for a reply after the decision, and again for a "quarantined" vote
   * @param decide called after each reply. Must decide when all replies have arrived
   */
  run(
    answered: (node: QuorumNode, reply: Reply, reading: ClockReading) => NodeVote["vote"],
    decide: (isComplete: boolean) => Result | undefined,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      for (const node of this.#nodes) {
        let isCounted = false;
        const recordVote = (
          vote: NodeVote["vote"],
          reply: Reply | undefined,
          reason: string | null,
        ): void => {
          const latencyMs = reply ? this.#grant.now() - reply.sent.now : null;
          this.#votes[node.index] = { node: node.name, vote, latencyMs, reason };
          this.#replyCount += isCounted ? 0 : 1;
          isCounted = true;
          try {
            const result = decide(this.#replyCount === this.#nodes.length);
            if (result !== undefined) {
              resolve(result);
            }
          } catch (error) {
            reject(error as Error);
          }
        };
        const count = (reply: Reply, reading: ClockReading): void => {
          const vote = answered(node, reply, reading);
          if (vote === "quarantined") {
            this.#uncounted.set(node, () => count(reply, reading));
          }
          recordVote(
            vote,
            reply,
            vote === "quarantined" ? this.#grant.quarantineReason(node, reading) : null,
          );
        };
        const failed = (error: unknown): void => {
          this.#errors.push(error);
          const reason = messageOf(error);
          recordVote(outcomeOf(error) === "unknown" ? "timeout" : "error", undefined, reason);
        };
        const operation: Operation = {
          keys: this.#grant.keys,
          args: this.#args,
          answered: (reply) => {
            const value = reply.value as unknown[];
            if (value[0] === "error") {
              failed(serverRefusal(String(value[1])));
            } else {
              this.#recount();
              count(reply, readingOf(reply.serverMicros, reply.sent.now, this.#grant.now()));
            }
          },
          failed,
        };
        node.server.perform(operation);
      }
    });
  }

  #recount(): void {
    const counts = [...this.#uncounted.values()];
    this.#uncounted.clear();
    for (const count of counts) {
      count();
    }
  }

  error(key: string): QuorumError {
    const cause = this.#errors[0];
    const isKnown = this.#errors.every((error) => outcomeOf(error) === "none");
    return new QuorumError({
      key,
      votes: this.#votes,
      outcome: isKnown ? "none" : "unknown",
      retryable: true,
      cause,
    });
  }
}
