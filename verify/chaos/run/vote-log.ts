import { subscribe } from "node:diagnostics_channel";

import type { CountedVote as PublishedVote, Diagnostics } from "holdfast";

import { shortRunId, type CountedVote } from "../judge/history.ts";
import type { ClientLog } from "./client-log.ts";

/**
 * Records the votes that each grant and each extension of a quorum counted.
 * @param ports the ports of the proxies in front of the servers
 */
export function recordVotes(log: ClientLog, ports: readonly number[]): void {
  const counted = ({ node, runId, via, remainingMs }: PublishedVote): CountedVote => ({
    node: ports.findIndex((port) => node.includes(`:${port}/`)),
    run: shortRunId(runId),
    via,
    remainingMs,
  });
  subscribe("holdfast:vote", (message) => {
    const { key, fencingToken, rounds, votes } = message as Diagnostics["vote"];
    const token = String(fencingToken);
    log.write({ e: "vote", at: log.clock.now(), key, token, rounds, votes: votes.map(counted) });
  });
  subscribe("holdfast:extended", (message) => {
    const { key, votes } = message as Diagnostics["extended"];
    log.write({ e: "extended", at: log.clock.now(), key, votes: votes.map(counted) });
  });
}
