import type { RunRecord } from "../record.ts";
import type { Panel, SuiteDescription } from "../suite.ts";
import { entrantsOf, summarize } from "../summary.ts";
import { curvesHeight, drawPanel, headingOf, rowHeight, type Drawn } from "./panels.ts";
import { rect, svg, text, type Box } from "./svg.ts";

const margin = 24;
const panelWidth = 320;
const gap = 40;
const letterWidth = 7.4;
const headHeight = 92;
const caseHeadHeight = 48;
const axisHeight = 26;
const caseGap = 22;

/** The picture of a suite: a block for each case, in it the panels from left to right. Of one record always the same. */
export function drawSuite(suite: SuiteDescription, record: RunRecord): string {
  const names = suite.panels.some(({ form }) => form !== "curves") ? entrantsOf(suite) : [];
  const namesWidth = Math.max(gap, ...names.map((name) => name.length * letterWidth + 12));
  const plotHeight = heightOf(suite.panels, names.length);
  const blockHeight = caseHeadHeight + plotHeight + axisHeight + caseGap;
  const width = margin * 2 + namesWidth + suite.panels.length * (panelWidth + gap) - gap;
  const blocks = suite.cases.flatMap((label, index) => {
    const y = headHeight + index * blockHeight;
    const drawn = {
      suite,
      rows: summarize(suite, label, record.samples),
      samples: ofCase(record, suite, label),
    };
    const box = { x: margin + namesWidth, y: y + caseHeadHeight, width: panelWidth, height: plotHeight };
    return [text([margin, y + 14], label, "case"), ...nameRows(names, box), ...panelsOf(drawn, box)];
  });
  const height = headHeight + suite.cases.length * blockHeight;
  return svg(Math.ceil(width), height, suite.title, [...head(suite, record), ...blocks]);
}

function head({ title, rounds }: SuiteDescription, { date, environment }: RunRecord): readonly string[] {
  const of =
    rounds === 1 ? "one round" : `medians of ${rounds} rounds, thin lines from the smallest to the largest`;
  const day = date.toISOString().slice(0, 10);
  const words = `${day}, Node ${environment.node}, Redis ${environment.redis}, ${of}`;
  const legend = [
    ["floor", "commands by hand"],
    ["peer", "other libraries"],
    ["own", "Holdfast"],
  ].flatMap(([kind = "", name = ""], index) => [
    rect({ x: margin + index * 150, y: 62, width: 12, height: 12 }, kind),
    text([margin + index * 150 + 18, 73], name),
  ]);
  return [text([margin, 28], title, "title"), text([margin, 48], words, "quiet"), ...legend];
}

function nameRows(names: ReturnType<typeof entrantsOf>, { x, y }: Box): readonly string[] {
  return names.map((name, index) => text([x - 8, y + rowHeight * (index + 0.5) + 4], name, "end"));
}

function panelsOf(drawn: Drawn, box: Box): readonly string[] {
  return drawn.suite.panels.flatMap((panel, index) => {
    const x = box.x + index * (panelWidth + gap);
    return [
      text([x, box.y - 12], headingOf(panel, drawn.suite), "quiet"),
      ...drawPanel(panel, drawn, { ...box, x }),
    ];
  });
}

function heightOf(panels: readonly Panel[], rows: number): number {
  return panels.some(({ form }) => form === "curves")
    ? Math.max(curvesHeight, rows * rowHeight)
    : rows * rowHeight;
}

function ofCase({ samples }: RunRecord, { name }: SuiteDescription, label: string): Drawn["samples"] {
  return samples.filter((sample) => sample.suite === name && sample.case === label);
}
