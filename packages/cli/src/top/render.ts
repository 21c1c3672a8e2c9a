import { lockStates, stateTitles } from "@holdfast/console/states";

import { formatDuration } from "../duration.ts";
import { describeLock, durationCell, holdersCell } from "../inspect/describe.ts";
import { sanitizeForTerminal, table } from "../inspect/table.ts";
import type { LockHistory, HoldSpan } from "./observation.ts";
import { actionFor, shownLocks, type View } from "./view.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Frame {
  readonly view: View;
  readonly locks: readonly LockHistory[];
  /** The last error or action. */
  readonly message: string;
  readonly engine: string;
  readonly size: Size;
  readonly now: number;
  /** Without the line of keys, for a frame that no person can change. */
  readonly isStill?: boolean;
}

const keys =
  "j/k move  Enter details  space mark  u break  / filter  s stale  a/t/o/w sort  p pause  ? help  q quit";

const help = [
  "j, k, arrows   move",
  "Enter          details: holders, waiters, and the observed history",
  "space          mark; u then breaks all marked locks",
  "u              break, after a question; the holder is notified, but may still work for a moment",
  "/              only keys and owners that contain what you type; Escape: all again",
  "s              only stale locks: late, foreign, or no expiry",
  "a  t  o  w     sort by age, time left, owner, waiters",
  "p              pause and continue",
  "q, Ctrl-C      quit",
  "",
  ...lockStates.map((word) => `${word.padEnd(15)}${stateTitles[word]}`),
];

/** Renders a frame as lines that fit the screen. */
export function render(frame: Frame): string[] {
  const { size, view } = frame;
  const room = Math.max(1, size.rows - 3);
  const body = bodies[view.mode](frame, room).slice(0, room);
  const padding = Array.from({ length: room - body.length }, () => "");
  const lastLine = frame.isStill === true ? "" : keys;
  return [heading(frame), ...body, ...padding, footing(frame), lastLine].map((line) =>
    fitted(line, size.columns),
  );
}

const bodies: Readonly<Record<View["mode"], (frame: Frame, room: number) => string[]>> = {
  list,
  filter: list,
  confirm: list,
  help: () => ["", ...help],
  details,
};

function heading({ locks, view, engine, message }: Frame): string {
  const waiting = locks.reduce((sum, { state }) => sum + state.waiterCount, 0);
  const stale = locks.filter(({ isStale }) => isStale).length;
  const flags = [
    view.isPaused ? "paused" : "",
    view.onlyStale ? "only stale" : "",
    `by ${view.order}`,
  ].filter(Boolean);
  const status = message === "" ? "" : `  ${message}`;
  return `${engine}  ${locks.length} held, ${waiting} waiting, ${stale} stale  [${flags.join(", ")}]${status}`;
}

function footing({ view, locks }: Frame): string {
  if (view.mode === "confirm") {
    const names = actionFor(view, locks).map(
      ({ state }) => `"${state.key}" of ${state.holders[0]?.owner ?? "an unknown holder"}`,
    );
    return `Break ${names.join(", ")}? (y/n)`;
  }
  return view.mode === "filter" || view.filter !== "" ? `/${view.filter}` : "";
}

/** A narrow terminal shows the columns without the first ones of these. The reason is shortened before. */
const droppable = ["REASON", "KIND", "FENCE", "LEFT", "OLDEST WAIT", "WAITING"];
const columns = [
  "",
  "KEY",
  "KIND",
  "HOLDER",
  "FENCE",
  "HELD",
  "LEFT",
  "WAITING",
  "OLDEST WAIT",
  "STATE",
  "REASON",
] as const;
/** The shortest useful column of reasons. */
const minReason = 12;

function list({ locks, view, size }: Frame, room: number): string[] {
  const all = shownLocks(locks, view);
  const at = Math.max(
    0,
    all.findIndex(({ state }) => state.key === view.cursor),
  );
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), all.length - room + 1));
  const rows = all.slice(first, first + room - 1).map((one) => row(one, view, all[at]));
  return table(fitting([columns, ...rows], size.columns)).split("\n");
}

/** The rows with the columns that fit. */
function fitting(rows: readonly (readonly string[])[], width: number): string[][] {
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const shown = new Set<string>(columns);
  const total = (): number =>
    columns.reduce((sum, name, column) => {
      const own = name === "REASON" ? Math.min(minReason, widths[column] ?? 0) : (widths[column] ?? 0);
      return shown.has(name) ? sum + own + 2 : sum;
    }, -2);
  for (const name of droppable) {
    if (total() > width) shown.delete(name);
  }
  return rows.map((row) => row.filter((_, column) => shown.has(columns[column] ?? "")));
}

function row(one: LockHistory, view: View, under: LockHistory | undefined): string[] {
  const { state, heldMs, isStale, word } = one;
  const { key, kind, holders, remainingMs, waiterCount, oldestWaitMs } = state;
  const [holder] = holders;
  const marks = [one === under ? ">" : " ", view.selected.has(key) ? "*" : " ", isStale ? "!" : " "].join("");
  return [
    marks,
    key,
    kind,
    holdersCell(state),
    holder?.fencingToken?.toString() ?? "-",
    `${formatDuration(heldMs)}${holder?.heldMs === undefined ? "+" : ""}`,
    durationCell(remainingMs),
    String(waiterCount),
    durationCell(oldestWaitMs),
    word,
    holder?.reason ?? "",
  ];
}

function details({ locks, view, size, now }: Frame): string[] {
  const one = locks.find(({ state }) => state.key === view.cursor);
  if (one === undefined) {
    return ["", `"${view.cursor ?? ""}" is free`];
  }
  return [
    "",
    ...describeLock(one.state).split("\n"),
    "",
    "observed history",
    ...gantt(one.history, size, now),
  ];
}

/** The observed holds, one line each, the newest last. */
function gantt(history: readonly HoldSpan[], { columns }: Size, now: number): string[] {
  const spans = history.slice(-10);
  const startedAt = spans[0]?.from ?? now;
  const width = Math.max(10, Math.floor(columns / 2) - 4);
  const place = (at: number): number =>
    Math.round(((at - startedAt) / Math.max(1, now - startedAt)) * (width - 1));
  return spans.map(({ owner, from, to }) => {
    const bar = `${" ".repeat(place(from))}${"=".repeat(Math.max(1, place(to) - place(from) + 1))}`;
    return `  |${bar.padEnd(width)}| ${formatDuration(to - from).padStart(7)}  ${owner}`;
  });
}

function fitted(line: string, columns: number): string {
  return sanitizeForTerminal(line).slice(0, columns);
}
