import type { Holder, LockState } from "holdfast";

import { formatDuration } from "../duration.ts";
import { sanitizeForTerminal, table } from "./table.ts";

/** The columns of a list. */
export const columns = [
  "KEY",
  "KIND",
  "HOLDER",
  "FENCE",
  "HELD",
  "LEFT",
  "WAITING",
  "OLDEST WAIT",
  "REASON",
] as const;

/** A lock as a row of a list. */
export function row(state: LockState): string[] {
  const { key, kind, holders, remainingMs, waiterCount, oldestWaitMs } = state;
  const [holder] = holders;
  return [
    key,
    kind,
    holdersCell(state),
    holder?.fencingToken?.toString() ?? "-",
    durationCell(holder?.heldMs),
    durationCell(remainingMs),
    String(waiterCount),
    durationCell(oldestWaitMs),
    holder?.reason ?? "",
  ];
}

/** A duration, or a dash for none. */
export function durationCell(ms: number | null | undefined): string {
  return typeof ms === "number" ? formatDuration(ms) : "-";
}

/** The first holder and the number of the others; of a latch, its count. */
export function holdersCell({ holders, remaining, limit }: LockState): string {
  const more = holders.length > 1 ? ` +${holders.length - 1}` : "";
  return remaining === undefined ? `${holders[0]?.owner ?? "-"}${more}` : `${remaining} of ${limit} left`;
}

/** The whole state of one lock, for people. */
export function describeLock(state: LockState): string {
  const { key, kind, limit, holders, waiterCount, fencingToken, nodes, remaining } = state;
  const bound = kind === "semaphore" ? ` of ${limit}` : "";
  const opened =
    remaining === undefined ? "" : `, ${remaining === 0 ? "open" : `${remaining} of ${limit} left`}`;
  const isFree = holders.length === 0 && remaining === undefined;
  return [
    `"${key}" is ${isFree ? "free" : `a ${kind}${bound}${opened}`}`,
    ...(fencingToken === null ? [] : [`newest fencing token: ${fencingToken}`]),
    ...(holders.length === 0 ? [] : ["", "held by", indented(holders.map(holderRow))]),
    ...(waiterCount === 0 ? [] : ["", ...describeWaiters(state)]),
    ...(nodes.length < 2
      ? []
      : [
          "",
          "nodes",
          indented(
            nodes.map(({ node, held, owner, error }) => [
              node,
              error ??
                (held === null ? "no reply" : held ? `held by ${owner ?? "an unknown holder"}` : "free"),
            ]),
          ),
        ]),
  ]
    .map((line) => line.split("\n").map(sanitizeForTerminal).join("\n"))
    .join("\n");
}

function describeWaiters({ holders, waiters, waiterCount, oldestWaitMs }: LockState): string[] {
  const { localWaiters = 0, localWaitMs } = holders[0] ?? {};
  const reported = `  ${localWaiters} in the memory of the holder's process${oldest(localWaitMs)}, by its last renewal`;
  const rows = waiters.map(({ position, owner, waitedMs }) => [
    `${position + 1}.`,
    owner,
    waitedMs === undefined ? "" : `for ${formatDuration(waitedMs)}`,
  ]);
  return [
    `${waiterCount} waiting${oldest(oldestWaitMs)}`,
    ...(localWaiters === 0 ? [] : [reported]),
    ...(rows.length === 0 ? [] : [indented(rows)]),
  ];
}

function oldest(waitedMs: number | undefined): string {
  return waitedMs === undefined ? "" : `, the oldest for ${formatDuration(waitedMs)}`;
}

function holderRow(holder: Holder): string[] {
  const { owner, reason, labels, fencingToken, mode, permits, remainingMs, heldMs } = holder;
  const about = [
    ...(mode === undefined ? [] : [mode]),
    ...(permits === undefined || permits === 1 ? [] : [`${permits} permits`]),
    ...(reason === undefined ? [] : [`"${reason}"`]),
    ...Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`),
  ];
  return [
    owner,
    `fence ${fencingToken ?? "unknown"}`,
    heldMs === undefined ? "" : `held for ${formatDuration(heldMs)}`,
    remainingMs === undefined ? "no known end" : `ends in ${formatDuration(remainingMs)} without a renewal`,
    about.join(", "),
  ];
}

function indented(rows: readonly (readonly string[])[]): string {
  return table(rows).replace(/^/gm, "  ");
}
