import type { Clock, Timer } from "../../../runtime/clock.ts";
import { EngineError, QuorumError, type NodeVote } from "../../../errors.ts";
import { isTransient, messageOf, outcomeOf } from "../server/errors.ts";
import type { QuorumNode } from "./quorum-node.ts";

/** How much longer the handshakes with the other nodes may take than the handshakes with a majority. */
const graceFactor = 5;
const maxGraceMs = 50;

/**
 * Performs the handshake with all nodes. Resolves soon after a majority has replied.
 * Rejects with a `QuorumError` if too few nodes reply.
 */
export function connectMajority(nodes: readonly QuorumNode[], majority: number, clock: Clock): Promise<void> {
  const failures = new Map<QuorumNode, unknown>();
  const startedAt = clock.now();
  let timer: Timer;
  return new Promise<void>((resolve, reject) => {
    let connected = 0;
    const judge = (): void => {
      if (failures.size > nodes.length - majority) {
        reject(connectError(nodes, failures));
      } else if (connected + failures.size === nodes.length) {
        resolve();
      } else if (connected === majority && timer === undefined) {
        // The median time of few nodes may differ much from the median of all, and the first tickets depend on the median.
        const graceMs = Math.min(maxGraceMs, (clock.now() - startedAt) * graceFactor);
        timer = clock.setTimer(resolve, graceMs, true);
      }
    };
    for (const node of nodes) {
      node.handshake().then(
        () => {
          connected += 1;
          judge();
        },
        (error: unknown) => {
          failures.set(node, error);
          judge();
        },
      );
    }
  }).finally(() => clock.clearTimer(timer));
}

function connectError(nodes: readonly QuorumNode[], failures: ReadonlyMap<QuorumNode, unknown>): QuorumError {
  const votes = nodes.map((node): NodeVote => {
    const error = failures.get(node);
    const reason =
      error === undefined ? "not requested, because too few other nodes replied" : messageOf(error);
    const vote = error instanceof EngineError ? "timeout" : "error";
    return { node: node.name, vote, latencyMs: null, reason };
  });
  const causes = [...failures.values()];
  return new QuorumError({
    votes,
    outcome: causes.every((error) => outcomeOf(error) === "none") ? "none" : "unknown",
    retryable: causes.some(isTransient),
    cause: causes[0],
  });
}
