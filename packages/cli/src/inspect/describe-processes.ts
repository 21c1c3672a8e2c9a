import type { ProcessState } from "holdfast";

import { formatDuration } from "../duration.ts";
import { sanitizeForTerminal } from "./table.ts";

/** The reports of the processes about one lock, for people. Empty if no process holds the lock or waits for it. */
export function describeProcesses(processes: readonly ProcessState[]): string[] {
  const lines = processes.flatMap((process) => [...holdLines(process), ...waitLines(process)]);
  return lines.length === 0 ? [] : ["", "reported by their processes", ...lines.map(sanitizeForTerminal)];
}

function holdLines({ owner, holds }: ProcessState): string[] {
  return holds.map(({ renewedMs, marginMs, localWaiters }) => {
    const waiting = localWaiters === 0 ? "" : `, ${localWaiters} waiting in its memory`;
    return `  ${owner} holds it: renewed ${formatDuration(renewedMs)} ago, safe for ${formatDuration(marginMs)}${waiting}`;
  });
}

function waitLines({ owner, waits }: ProcessState): string[] {
  return waits.map(
    ({ count, oldestMs }) => `  ${owner}: ${count} waiting, the oldest for ${formatDuration(oldestMs)}`,
  );
}
