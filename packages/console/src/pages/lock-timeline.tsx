import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { PastHold } from "../api/types.ts";
import { now } from "../live/live.ts";
import { brokenBy } from "../model/broken.ts";
import { formatDuration, formatTicking } from "../model/duration.ts";
import { observedText } from "../model/sentence.ts";
import { Ago, OwnerName } from "../ui/parts.tsx";
import { lanesOf, timelineOf, type Bar } from "../model/timeline.ts";

interface PanelProps {
  readonly holds: readonly PastHold[];
  readonly knownSince: number | undefined;
  /** Whether the service has a history. Otherwise the page shows only what it has seen. */
  readonly isOffered: boolean;
  /** Whether several holders can hold at once. */
  readonly isShared: boolean;
}

const mostLanes = 4;
const laneHeight = 16;
const gap = 4;
const axisHeight = 18;

/** The last holds as bars, the newest at the right. The table below has the last of them in words. */
export function TimelinePanel({ holds, knownSince, isOffered, isShared }: PanelProps) {
  const active = useSignal<number | undefined>(undefined);
  const time = now.value;
  const shown = active.value === undefined ? undefined : holds[active.value];
  return (
    <section class="panel" data-testid="timeline">
      <h2>
        Holds{" "}
        <span class="num muted" title={knownSince === undefined ? undefined : observedText(knownSince, time)}>
          {holds.length === 0 ? "" : `last ${holds.length}`}
        </span>
        {!isOffered && <small class="muted">as this page has seen them</small>}
      </h2>
      {holds.length === 0 ? (
        <p class="muted">
          No hold is known yet{knownSince === undefined ? "." : `: ${observedText(knownSince, time)}.`}
        </p>
      ) : (
        <>
          <Chart
            holds={holds}
            now={time}
            lanes={isShared ? mostLanes : 1}
            point={(index) => (active.value = index)}
            active={active.value}
          />
          <p class="read-out">
            {shown === undefined ? <Legend holds={holds} /> : <Detail hold={shown} now={time} />}
          </p>
          <HoldsTable holds={holds} now={time} />
        </>
      )}
    </section>
  );
}

interface ChartProps {
  readonly holds: readonly PastHold[];
  readonly now: number;
  readonly lanes: number;
  readonly point: (index: number | undefined) => void;
  readonly active: number | undefined;
}

function Chart({ holds, now: time, lanes: most, point, active }: ChartProps) {
  const box = useRef<SVGSVGElement>(null);
  const width = useWidth(box);
  const { bars, ticks } = timelineOf(holds, time);
  const lanes = lanesOf(bars, most);
  const rows = Math.max(...lanes) + 1;
  const height = rows * (laneHeight + gap) + axisHeight;
  return (
    <svg
      ref={box}
      class="timeline"
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${holds.length} holds, the oldest ${formatDuration(time - (holds.at(-1)?.since ?? time))} ago`}
      onPointerLeave={() => point(undefined)}
    >
      {ticks.map(({ at, ms }) => (
        <g key={ms} class="tick">
          <line x1={at * width} x2={at * width} y1="0" y2={height - axisHeight + 4} />
          <text x={at * width} y={height - 4} text-anchor="middle">
            {formatDuration(ms)}
          </text>
        </g>
      ))}
      <text class="tick-now" x={width} y={height - 4} text-anchor="end">
        now
      </text>
      {bars.map((bar, index) => (
        <HoldBar
          key={`${bar.hold.fencingToken ?? bar.hold.owner} ${bar.hold.since}`}
          bar={bar}
          y={(lanes[index] ?? 0) * (laneHeight + gap)}
          width={width}
          isActive={active === index}
          point={() => point(index)}
        />
      ))}
    </svg>
  );
}

/** The width of the chart on the page, so that its text keeps its size. */
function useWidth(box: { readonly current: SVGSVGElement | null }): number {
  const width = useSignal(600);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => (width.value = Math.max(200, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width.value;
}

interface BarProps {
  readonly bar: Bar;
  readonly y: number;
  readonly width: number;
  readonly isActive: boolean;
  readonly point: () => void;
}

function HoldBar({ bar, y, width, isActive, point }: BarProps) {
  const end = endOf(bar.hold);
  const x = bar.from * width;
  const barWidth = Math.max(1.5, bar.width * width - 1);
  return (
    <g class={`bar bar-${end} ${isActive ? "bar-active" : ""}`} onPointerEnter={point}>
      <rect x={x} y={y} width={barWidth} height={laneHeight} rx="2" />
      {endMarks[end] !== undefined && (
        <path
          class="bar-mark"
          d={endMarks[end]}
          transform={`translate(${(x + barWidth).toFixed(1)} ${y + laneHeight / 2})`}
        />
      )}
    </g>
  );
}

function Legend({ holds }: { holds: readonly PastHold[] }) {
  const counts = new Map<string, number>();
  for (const hold of holds) counts.set(endOf(hold), (counts.get(endOf(hold)) ?? 0) + 1);
  return (
    <>
      {[...counts].map(([end, count]) => (
        <span key={end} class={`legend legend-${end}`}>
          {endMarks[end] !== undefined && (
            <svg class="legend-mark" viewBox="-5 -6 10 12" aria-hidden="true">
              <path class="bar-mark" d={endMarks[end]} />
            </svg>
          )}
          {count} {endWords[end] ?? end}
        </span>
      ))}
    </>
  );
}

function Detail({ hold, now: time }: { hold: PastHold; now: number }) {
  const held = formatTicking((hold.until ?? time) - hold.since);
  return (
    <>
      <strong>{hold.owner}</strong>
      {hold.reason !== undefined && ` (${hold.reason})`} {held}, {endText(hold)},{" "}
      {formatTicking(time - hold.since)} ago
    </>
  );
}

const mostListed = 4;

/** The last holds in words. */
function HoldsTable({ holds, now: time }: { holds: readonly PastHold[]; now: number }) {
  return (
    <table class="table last-holds" aria-label="Last holds">
      <tbody>
        {holds.slice(0, mostListed).map((hold) => (
          <tr key={`${hold.fencingToken ?? hold.owner} ${hold.since}`}>
            <td>
              <OwnerName owner={hold.owner} />
            </td>
            <td class="num right">{formatTicking((hold.until ?? time) - hold.since)}</td>
            <td class="muted" title={hold.break && endText(hold)}>
              {endWords[endOf(hold)]}
            </td>
            <td class="muted num right">{hold.until === null ? "" : <Ago at={hold.until} now={time} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The signs at the ends of bars, besides their colours: a cross, a slash and a ring. */
const endMarks: Readonly<Record<string, string>> = {
  broken: "M-3.5-4l7 8m0-8l-7 8",
  lost: "M-2.5 5l5-10",
  expired: "M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0",
};

const endWords: Readonly<Record<string, string>> = {
  now: "held now",
  released: "released",
  expired: "expired",
  lost: "lost",
  broken: "broken",
  unknown: "ended",
};

/** How the hold ended, with the operator and the reason of a break. */
function endText(hold: PastHold): string {
  return `${endWords[endOf(hold)]}${brokenBy(hold)}`;
}

function endOf({ until, end = "unknown" }: PastHold): string {
  return until === null ? "now" : end;
}
