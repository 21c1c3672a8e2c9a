/** The colours of contestants, text and lines, in light and in dark mode. */
const style = `
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 } .case { font-size: 14px; font-weight: 600 }
  .quiet { fill: #59636e } .end { text-anchor: end } .middle { text-anchor: middle }
  .ground { fill: #ffffff } .grid { stroke: #d1d9e0 } .range { stroke: #1f2328; stroke-opacity: 0.65 }
  .floor { fill: #8c959f } .peer { fill: #4c8dc9 } .own { fill: #d4571e }
  .floor-line { stroke: #8c959f; fill: none } .peer-line { stroke: #4c8dc9; fill: none }
  .own-line { stroke: #d4571e; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9198a1 } .ground { fill: #0d1117 } .grid { stroke: #30363d }
    .range { stroke: #e6edf3 } .floor { fill: #7d8590 } .peer { fill: #5aa2e0 } .own { fill: #f0803c }
    .floor-line { stroke: #7d8590 } .peer-line { stroke: #5aa2e0 } .own-line { stroke: #f0803c }
  }`;

/** A standalone SVG file that follows the reader's light or dark mode. */
export function svg(width: number, height: number, label: string, parts: readonly string[]): string {
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escapeXml(label)}">`,
    `<style>${style}\n</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function rect({ x, y, width, height }: Box, kind: string): string {
  return `<rect class="${kind}" x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}"/>`;
}

export type Spot = readonly [x: number, y: number];

export function line([x1, y1]: Spot, [x2, y2]: Spot, kind: string, width = 1): string {
  return `<line class="${kind}" x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" stroke-width="${width}"/>`;
}

export function dot([x, y]: Spot, radius: number, kind: string): string {
  return `<circle class="${kind}" cx="${at(x)}" cy="${at(y)}" r="${radius}"/>`;
}

export function polyline(spots: readonly Spot[], kind: string): string {
  return `<polyline class="${kind}" points="${spots.map(([x, y]) => `${at(x)},${at(y)}`).join(" ")}" stroke-width="2"/>`;
}

export function text([x, y]: Spot, content: string, kind = ""): string {
  return `<text class="${kind}" x="${at(x)}" y="${at(y)}">${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function at(value: number): string {
  return value.toFixed(1);
}
