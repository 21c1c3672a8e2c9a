import type { Panel } from "../../suites/suite.ts";
import type { NamedRow } from "../blocks.ts";
import type { Figure, SuiteRecord } from "../record.ts";
import { colourOf } from "./colour.ts";
import { linearScale, logScale, compactNumber, type Scale } from "./scale.ts";
import { dot, line, polyline, rect, text, type Box } from "./svg.ts";

export const rowHeight = 22;
export const curvesHeight = 150;
const barHeight = 13;
/** The width of the figure after the longest bar. */
const figureWidth = 52;
/** The width of the name after a line. */
const nameWidth = 72;
const nameHeight = 15;

/** The data of a case that a panel draws. */
export interface Drawn {
  readonly record: SuiteRecord;
  readonly rows: readonly NamedRow[];
}

export function headingOf(panel: Panel, { metrics }: SuiteRecord): string {
  if (panel.form !== "bars") return panel.label;
  return metrics.find(({ id }) => id === panel.metric)?.label ?? panel.metric;
}

export function drawPanel(panel: Panel, drawn: Drawn, box: Box): readonly string[] {
  switch (panel.form) {
    case "bars":
      return bars(panel.metric, drawn, box);
    case "spans":
      return spans(panel, drawn, box);
    case "curves":
      return curves(panel.series, drawn, box);
  }
}

/** A bar for the median, a line from the smallest to the largest value of the rounds, and the figure after both. */
function bars(metric: string, { rows, record }: Drawn, box: Box): readonly string[] {
  const plot = { ...box, width: box.width - figureWidth };
  const index = indexOf(record, metric);
  const cells = rows.map(({ contestant, median, least = median, most = median }) => ({
    contestant,
    value: at(median, index),
    range: [at(least, index), at(most, index)] as const,
  }));
  const scale = linearScale(cells.flatMap(({ value, range }) => [value, ...range]));
  const xOf = (value: number): number => plot.x + scale.positionOf(value) * plot.width;
  const marks = cells.flatMap(({ contestant, value, range }, index) => {
    const y = middleOf(plot, index);
    if (!Number.isFinite(value)) return [text([plot.x + 6, y + 4], "–", "quiet")];
    const [smallest, largest] = range;
    const width = Math.max(1, xOf(value) - plot.x);
    return [
      rect({ x: plot.x, y: y - barHeight / 2, width, height: barHeight }, colourOf(contestant)),
      ...(largest > smallest ? [line([xOf(smallest), y], [xOf(largest), y], "range", 1.5)] : []),
      text([Math.max(xOf(value), xOf(largest)) + 6, y + 4], compactNumber(value)),
    ];
  });
  return [...axis(scale, plot), ...marks];
}

/** A dot at the first metric, a line to the last, and a mark at each metric between. */
function spans(
  { metrics, scale: kind }: Panel & { form: "spans" },
  { rows, record }: Drawn,
  box: Box,
): readonly string[] {
  const plot = { ...box, width: box.width - figureWidth };
  const indices = metrics.map((metric) => indexOf(record, metric));
  const values = rows.map(({ median }) => indices.map((index) => at(median, index)));
  const scale = kind === "log" ? logScale(values.flat()) : linearScale(values.flat());
  const xOf = (value: number): number => plot.x + scale.positionOf(value) * plot.width;
  const marks = rows.flatMap(({ contestant }, index) => {
    const y = middleOf(plot, index);
    const seen = (values[index] ?? []).filter(Number.isFinite);
    const [first, last] = [seen[0], seen.at(-1)];
    if (first === undefined || last === undefined) return [text([plot.x + 6, y + 4], "–", "quiet")];
    const stroke = `${colourOf(contestant)}-line`;
    return [
      line([xOf(first), y], [xOf(last), y], stroke, 3),
      ...seen.slice(1).map((value) => line([xOf(value), y - 6], [xOf(value), y + 6], stroke, 2)),
      dot([xOf(first), y], 4.5, colourOf(contestant)),
      text([xOf(last) + 8, y + 4], compactNumber(last)),
    ];
  });
  return [...axis(scale, plot), ...marks];
}

/** One line for each contestant, with its name at the end. */
function curves(name: string, { rows }: Drawn, box: Box): readonly string[] {
  const plot = { ...box, width: box.width - nameWidth };
  const lines = rows.flatMap(({ contestant, series = {} }) => {
    const points = (series["seconds"] ?? []).map((x, index) => [x, series[name]?.[index] ?? 0] as const);
    return points.length > 0 ? [{ contestant, points }] : [];
  });
  const points = lines.flatMap(({ points }) => points);
  const along = linearScale(points.map(([x]) => x));
  const up = linearScale(points.map(([, y]) => y));
  const yOf = (value: number): number => plot.y + (1 - up.positionOf(value)) * plot.height;
  const grid = up.ticks.flatMap((tick) => [
    line([plot.x, yOf(tick)], [plot.x + plot.width, yOf(tick)], "grid"),
    text([plot.x - 6, yOf(tick) + 4], compactNumber(tick), "quiet end"),
  ]);
  const spots = lines.map(({ points }) =>
    points.map(([x, y]) => [plot.x + along.positionOf(x) * plot.width, yOf(y)] as const),
  );
  const names = spreadLabels(spots.map((line) => line.at(-1)?.[1] ?? plot.y));
  const drawn = lines.flatMap(({ contestant }, index) => [
    polyline(spots[index] ?? [], `${colourOf(contestant)}-line`),
    text([plot.x + plot.width + 6, (names[index] ?? plot.y) + 4], contestant),
  ]);
  return [...grid, ...axis(along, plot, " s"), ...drawn];
}

/** Moves labels down until none covers another. */
function spreadLabels(heights: readonly number[]): readonly number[] {
  const positions = [...heights];
  const order = [...heights.keys()].sort((one, other) => (heights[one] ?? 0) - (heights[other] ?? 0));
  let free = -Infinity;
  for (const index of order) {
    positions[index] = Math.max(free, positions[index] ?? 0);
    free = positions[index] + nameHeight;
  }
  return positions;
}

function axis({ ticks, positionOf }: Scale, { x, y, width, height }: Box, unit = ""): readonly string[] {
  return ticks.flatMap((tick) => {
    const at = x + positionOf(tick) * width;
    return [
      line([at, y], [at, y + height], "grid"),
      text([at, y + height + 15], compactNumber(tick) + unit, "quiet middle"),
    ];
  });
}

function middleOf({ y }: Box, index: number): number {
  return y + rowHeight * (index + 0.5);
}

function indexOf({ metrics }: SuiteRecord, metric: string): number {
  const index = metrics.findIndex(({ id }) => id === metric);
  if (index === -1) throw new RangeError(`Expected a metric of the suite, got ${metric}`);
  return index;
}

function at(figures: readonly Figure[], index: number): number {
  const figure = figures[index];
  return typeof figure === "number" ? figure : Number.NaN;
}
