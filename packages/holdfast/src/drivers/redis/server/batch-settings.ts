import { maxSkewWaitMs } from "../options.ts";
import { executeQuorumScript, executeSingleScript } from "../protocol/scripts.generated.ts";
import type { BatcherSettings } from "./batch.ts";

interface QuorumNodeLimits {
  readonly nodeTimeoutMs: number;
  readonly maxClockDifferenceMs?: number | undefined;
  readonly retentionMs?: number | undefined;
  readonly queueBound: number;
}

/** Batches for a server that decides alone. */
export function singleServerBatches(counter: string, queueBound: number, timeoutMs: number): BatcherSettings {
  return {
    script: executeSingleScript,
    keys: [counter],
    args: [String(queueBound)],
    timeoutMs,
    withRunId: false,
  };
}

/** Batches for a node of a quorum. */
export function quorumNodeBatches(limits: QuorumNodeLimits): BatcherSettings {
  const { nodeTimeoutMs, maxClockDifferenceMs = 0, retentionMs = 0, queueBound } = limits;
  return {
    script: executeQuorumScript,
    keys: [],
    args: [String(retentionMs), String(queueBound), String(maxSkewWaitMs(maxClockDifferenceMs))],
    timeoutMs: nodeTimeoutMs,
    withRunId: true,
  };
}
