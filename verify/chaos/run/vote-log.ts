import { subscribe } from "node:diagnostics_channel";

import type { CountedVote as Told, Diagnostics } from "holdfast";

import { shortRunId, type CountedVote } from "../judge/history.ts";
import type { Recorder } from "./recorder.ts";

/**
 * Records the votes that each grant and each extension of a quorum counted.
 * @param ports the ports of the proxies in front of the servers
 */
export function recordVotes(recorder: Recorder, ports: readonly number[]): void {
  const counted = ({ node, runId, via, remainingMs }: Told): CountedVote => ({
    node: ports.findIndex((port) => node.includes(`:${port}/`)),
    run: shortRunId(runId),
    via,
    remainingMs,
  });
  subscribe("holdfast:vote", (message) => {
    const { key, fencingToken, rounds, votes } = message as Diagnostics["vote"];
    const token = String(fencingToken);
    recorder.write({ e: "vote", at: recorder.clock.now(), key, token, rounds, votes: votes.map(counted) });
  });
  subscribe("holdfast:extended", (message) => {
    const { key, votes } = message as Diagnostics["extended"];
    recorder.write({ e: "extended", at: recorder.clock.now(), key, votes: votes.map(counted) });
  });
}
