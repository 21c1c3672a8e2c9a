import type { Instant } from "../judge/history.ts";
import type { Violation } from "../judge/rule.ts";
import type { HoldInterval } from "../judge/rules/tenures.ts";
import type { FaultInterval, GrantedAttempt, RunHistory } from "../judge/attempts.ts";
import { escapeXml, line, rect, svg, text } from "./svg.ts";

export interface Window {
  readonly from: Instant;
  readonly to: Instant;
}

export interface Timeline {
  readonly run: RunHistory;
  readonly key: string;
  readonly intervals: readonly HoldInterval[];
  readonly violations: readonly Violation[];
  /** The part that is drawn enlarged. */
  readonly window: Window;
}

const width = 1_600;
const left = 170;
const plotWidth = width - left - 20;
const overviewTop = 60;
const overviewHeight = 46;
const rowHeight = 22;
const faultHeight = 9;
const bins = 700;

const colours = {
  released: "#3a7d44",
  lost: "#c8553d",
  transferred: "#2f6690",
  open: "#8d6a9f",
  fault: "#e9c46a",
  violation: "#d00000",
  grid: "#d8d8d8",
  ink: "#222",
} as const;

/**
 * The holders of one key over time: an overview of the whole run, and an enlarged window with one row for each client. Faults are in the
 * background.
 */
export function drawTimeline(timeline: Timeline): string {
  const { run, key, window } = timeline;
  const faults = run.faults.filter(({ from, to }) => to >= window.from && from <= window.to);
  const lanes = lanesOf(faults);
  const holdersTop = overviewTop + overviewHeight + 60;
  const clientCount = run.plan.clients.length;
  const faultsTop = holdersTop + clientCount * rowHeight + 34;
  const height = faultsTop + Math.max(1, lanes.length) * (faultHeight + 3) + 40;
  const title = `${run.plan.engine}, seed ${run.plan.seed}: holders of "${key}"`;
  return svg(width, height, [
    text(left, 24, title, { size: 16 }),
    legend(),
    ...overview(timeline),
    ...faultBands(faults, window, holdersTop, clientCount * rowHeight),
    ...axis(window, holdersTop, faultsTop + lanes.length * (faultHeight + 3)),
    ...rows(timeline, holdersTop),
    ...faultRows(lanes, window, faultsTop),
    ...marks(timeline, holdersTop, clientCount * rowHeight),
  ]);
}

function legend(): string {
  const items = [
    ["released", colours.released],
    ["transferred", colours.transferred],
    ["lost, and told", colours.lost],
    ["no end known (killed)", colours.open],
    ["a fault at work", colours.fault],
    ["violation", colours.violation],
  ] as const;
  return items
    .map(([name, colour], index) => {
      const x = left + index * 165;
      return rect(x, 34, 12, 10, colour) + text(x + 17, 43, name, { size: 11 });
    })
    .join("");
}

/** The grants of the run as bars, with storms, violations, and the position of the window. */
function overview({ run, intervals, violations, window }: Timeline): string[] {
  const scale = (at: Instant): number => left + (at / run.endedAt) * plotWidth;
  const counts = Array.from({ length: bins }, () => 0);
  for (const { from } of intervals) {
    const bin = Math.min(bins - 1, Math.floor((from / run.endedAt) * bins));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const most = Math.max(1, ...counts);
  const bottom = overviewTop + overviewHeight;
  return [
    text(8, overviewTop + 14, "the whole run", { size: 12 }),
    text(8, overviewTop + 30, `up to ${most} grants in ${Math.round(run.endedAt / bins)} ms`, { size: 10 }),
    ...run.phases
      .filter(({ phase }) => phase === "storm")
      .map(({ from, to }) =>
        rect(scale(from), overviewTop, scale(to) - scale(from), overviewHeight, colours.fault, 0.25),
      ),
    ...counts.map((count, bin) =>
      count === 0
        ? ""
        : rect(
            left + (bin / bins) * plotWidth,
            bottom - (count / most) * overviewHeight,
            plotWidth / bins,
            (count / most) * overviewHeight,
            colours.released,
            0.7,
          ),
    ),
    ...violations.map(({ at }) => line(scale(at), overviewTop, scale(at), bottom, colours.violation, 1.5)),
    `<rect x="${scale(window.from).toFixed(1)}" y="${overviewTop - 3}" width="${Math.max(2, scale(window.to) - scale(window.from)).toFixed(1)}" height="${overviewHeight + 6}" fill="none" stroke="${colours.ink}"/>`,
    text(
      left,
      bottom + 16,
      `0 s, storms shaded, to ${(run.endedAt / 1_000).toFixed(1)} s. The frame is the part that is enlarged below.`,
      {
        size: 10,
      },
    ),
  ];
}

function rows({ run, intervals, window }: Timeline, top: number): string[] {
  const scale = scaleOf(window);
  const parts: string[] = [];
  for (const [index, { handover }] of run.plan.clients.entries()) {
    const y = top + index * rowHeight;
    parts.push(text(8, y + 15, `client ${index}${handover ? ", hands over" : ""}`, { size: 12 }));
    parts.push(line(left, y + rowHeight, left + plotWidth, y + rowHeight, colours.grid, 0.5));
  }
  for (const interval of intervals) {
    if (interval.to < window.from || interval.from > window.to || interval.to <= interval.from) {
      continue;
    }
    for (const lease of interval.leases) {
      const y = top + clientOf(lease) * rowHeight + 3;
      const from = scale(Math.max(window.from, lease.grantedAt));
      const to = scale(Math.min(window.to, endOfBar(lease, interval)));
      const width = Math.max(1, to - from);
      parts.push(rect(from, y, width, rowHeight - 6, colourOf(lease), 0.9, tooltip(lease)));
    }
  }
  return parts;
}

function endOfBar(lease: GrantedAttempt, interval: HoldInterval): Instant {
  const own = Math.min(
    lease.validUntil,
    lease.releasingAt ?? Infinity,
    lease.lostAt ?? Infinity,
    lease.transferredAt ?? Infinity,
  );
  return Math.max(lease.grantedAt, Math.min(own, interval.to));
}

function colourOf({ lostAt, releasingAt, transferredAt }: GrantedAttempt): string {
  if (lostAt !== undefined) return colours.lost;
  if (transferredAt !== undefined) return colours.transferred;
  return releasingAt === undefined ? colours.open : colours.released;
}

function tooltip(lease: GrantedAttempt): string {
  const { process, requestId, token, kind, grantedAt, validUntil, lossReason } = lease;
  const loss = lossReason === undefined ? "" : `, lost: ${lossReason}`;
  return `${process}#${requestId} (${kind}) token ${token}, granted at ${grantedAt.toFixed(3)} ms, valid until ${validUntil.toFixed(3)} ms${loss}`;
}

function faultBands(faults: readonly FaultInterval[], window: Window, top: number, height: number): string[] {
  const scale = scaleOf(window);
  return faults.map(({ from, to }) => {
    const x = scale(Math.max(from, window.from));
    return rect(x, top, Math.max(1, scale(Math.min(to, window.to)) - x), height, colours.fault, 0.12);
  });
}

/** The faults, in the smallest number of lanes in which no fault overlaps the name of an earlier fault. */
function lanesOf(faults: readonly FaultInterval[]): FaultInterval[][] {
  const lanes: { readonly faults: FaultInterval[]; freeFrom: Instant }[] = [];
  const nameMs = 4_000;
  for (const fault of faults) {
    const lane = lanes.find(({ freeFrom }) => freeFrom <= fault.from);
    const freeFrom = Math.max(fault.to, fault.from + nameMs);
    if (lane) {
      lane.faults.push(fault);
      lane.freeFrom = freeFrom;
    } else {
      lanes.push({ faults: [fault], freeFrom });
    }
  }
  return lanes.map((lane) => lane.faults);
}

function faultRows(lanes: readonly (readonly FaultInterval[])[], window: Window, top: number): string[] {
  const scale = scaleOf(window);
  return [
    text(8, top + 9, "faults", { size: 12 }),
    ...lanes.flatMap((lane, index) => {
      const y = top + index * (faultHeight + 3);
      return lane.flatMap(({ from, to, kind, target }) => {
        const x = scale(Math.max(from, window.from));
        const end = scale(Math.min(to, window.to));
        return [
          rect(x, y, Math.max(2, end - x), faultHeight, colours.fault, 1, `${kind}: ${target}`),
          text(x + 2, y + faultHeight - 1, `${kind}: ${target}`, { size: 8 }),
        ];
      });
    }),
  ];
}

function axis(window: Window, top: number, bottom: number): string[] {
  const scale = scaleOf(window);
  const stepMs = stepOf(window.to - window.from);
  const parts: string[] = [];
  for (let at = Math.ceil(window.from / stepMs) * stepMs; at <= window.to; at += stepMs) {
    parts.push(line(scale(at), top - 4, scale(at), bottom, colours.grid, 1));
    parts.push(
      text(scale(at) + 2, top - 8, `${(at / 1_000).toFixed(stepMs < 1_000 ? 1 : 0)} s`, { size: 10 }),
    );
  }
  return parts;
}

function stepOf(lengthMs: number): number {
  return [100, 200, 500, 1_000, 2_000, 5_000].find((stepMs) => lengthMs / stepMs <= 20) ?? 10_000;
}

function marks({ violations, window }: Timeline, top: number, height: number): string[] {
  const scale = scaleOf(window);
  return violations
    .filter(({ at }) => at >= window.from && at <= window.to)
    .map(
      ({ at, rule, text: tooltips }) =>
        `<g><title>${escapeXml(`${rule}: ${tooltips}`)}</title>${line(scale(at), top - 4, scale(at), top + height + 4, colours.violation, 2)}</g>`,
    );
}

function scaleOf({ from, to }: Window): (at: Instant) => number {
  return (at) => left + ((at - from) / (to - from)) * plotWidth;
}

/** Processes are named `client-<index>.<generation>`. */
function clientOf({ process }: GrantedAttempt): number {
  return Number(/^client-(\d+)/.exec(process)?.[1] ?? 0);
}
