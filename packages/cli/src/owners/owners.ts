import type { ProcessState } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { table } from "../inspect/table.ts";
import { withEngine } from "../with-engine.ts";

export interface OwnersOptions {
  readonly target: Target;
  /** Undefined: all keys. */
  readonly key: string | undefined;
  readonly json: boolean;
}

const columns = ["PROCESS", "HOST", "PID", "HOLDS", "WAITS", "OLDEST WAIT", "LAG"] as const;

/** Lists the processes with their leases, waits and lag. A limit of the list is a message on stderr. */
export function owners({ target, key, json }: OwnersOptions): Promise<number> {
  return withEngine(target, undefined, async ({ locks }, signal) => {
    const list = await locks.admin.processes({ key, signal });
    const shown = list.processes.filter(
      ({ answered, holdCount, waitCount }) => key === undefined || !answered || holdCount + waitCount > 0,
    );
    process.stdout.write(
      json
        ? `${JSON.stringify({ version: 1, ...list, processes: shown })}\n`
        : `${table([columns, ...shown.map(row)])}\n`,
    );
    if (list.problem !== null && !json) {
      process.stderr.write(`holdfast: other processes are not known: ${list.problem}\n`);
    }
    return exitCodes.done;
  });
}

function row({ owner, host, pid, answered, seenMs, lagMs, holdCount, waits }: ProcessState): string[] {
  const identity = [owner, host ?? "-", pid === undefined ? "-" : String(pid)];
  if (!answered) {
    return [...identity, "-", "-", "-", `no answer, seen ${formatDuration(seenMs)} ago`];
  }
  const waiting = waits.reduce((sum, { count }) => sum + count, 0);
  const [oldest] = waits;
  return [
    ...identity,
    String(holdCount),
    String(waiting),
    oldest === undefined ? "-" : formatDuration(oldest.oldestMs),
    lagMs === undefined ? "-" : formatDuration(lagMs),
  ];
}
