import { blocksOf, type Block } from "../blocks.ts";
import type { SuiteRecord } from "../record.ts";
import type { Panel } from "../../suites/suite.ts";
import { curvesHeight, drawPanel, headingOf, rowHeight, type Drawn } from "./panels.ts";
import { rect, svg, text, type Box } from "./svg.ts";

const margin = 24;
const panelWidth = 320;
const gap = 40;
const letterWidth = 7.4;
const headHeight = 92;
const blockHeadHeight = 48;
const axisHeight = 26;
const blockGap = 22;

/** The chart of a suite: one row of panels for each block. Equal records give equal charts. */
export function drawSuite(record: SuiteRecord): string {
  const { panels, title } = record;
  const blocks = blocksOf(record);
  const hasNames = panels.some(({ form }) => form !== "curves");
  const namesOf = ({ rows }: Block): string[] => (hasNames ? rows.map(({ name }) => name) : []);
  const namesWidth = Math.max(gap, ...blocks.flatMap(namesOf).map(widthOf));
  const width = margin * 2 + namesWidth + panels.length * (panelWidth + gap) - gap;
  const parts: string[] = [];
  let y = headHeight;
  for (const block of blocks) {
    const names = namesOf(block);
    const height = heightOf(panels, names.length);
    const box = { x: margin + namesWidth, y: y + blockHeadHeight, width: panelWidth, height };
    parts.push(text([margin, y + 14], block.title, "case"), ...nameRows(names, box));
    parts.push(...panelsOf({ ...block, record }, box));
    y = box.y + height + axisHeight + blockGap;
  }
  return svg(Math.ceil(width), y, title, [...head(record), ...parts]);
}

function widthOf(name: string): number {
  return name.length * letterWidth + 12;
}

function head({ title, rounds, date, environment }: SuiteRecord): readonly string[] {
  const of =
    rounds === 1 ? "one round" : `medians of ${rounds} rounds, thin lines from the smallest to the largest`;
  const heading = `${date.slice(0, 10)}, Node ${environment.node}, ${environment.servers.join(", ")}, ${of}`;
  const legend = [
    ["floor", "commands by hand"],
    ["peer", "other libraries"],
    ["own", "Holdfast"],
  ].flatMap(([kind = "", name = ""], index) => [
    rect({ x: margin + index * 150, y: 62, width: 12, height: 12 }, kind),
    text([margin + index * 150 + 18, 73], name),
  ]);
  return [text([margin, 28], title, "title"), text([margin, 48], heading, "quiet"), ...legend];
}

function nameRows(names: readonly string[], { x, y }: Box): readonly string[] {
  return names.map((name, index) => text([x - 8, y + rowHeight * (index + 0.5) + 4], name, "end"));
}

function panelsOf(drawn: Drawn, box: Box): readonly string[] {
  return drawn.record.panels.flatMap((panel, index) => {
    const x = box.x + index * (panelWidth + gap);
    return [
      text([x, box.y - 12], headingOf(panel, drawn.record), "quiet"),
      ...drawPanel(panel, drawn, { ...box, x }),
    ];
  });
}

function heightOf(panels: readonly Panel[], rows: number): number {
  return panels.some(({ form }) => form === "curves")
    ? Math.max(curvesHeight, rows * rowHeight)
    : rows * rowHeight;
}
