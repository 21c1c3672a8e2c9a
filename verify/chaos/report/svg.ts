/** A complete SVG image, on white. */
export function svg(width: number, height: number, elements: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif">`;
  return [
    head,
    rect(0, 0, width, height, "#fff"),
    ...elements.filter((part) => part !== ""),
    "</svg>",
    "",
  ].join("\n");
}

export function rect(
  x: number,
  y: number,
  width: number,
  height: number,
  fill: string,
  opacity = 1,
  title?: string,
): string {
  const shape = `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}" fill="${fill}" fill-opacity="${opacity}"`;
  return title === undefined ? `${shape}/>` : `${shape}><title>${escapeXml(title)}</title></rect>`;
}

export function line(
  fromX: number,
  fromY: number,
  toX: number,
  toY: number,
  stroke: string,
  width: number,
): string {
  return `<line x1="${fromX.toFixed(1)}" y1="${fromY.toFixed(1)}" x2="${toX.toFixed(1)}" y2="${toY.toFixed(1)}" stroke="${stroke}" stroke-width="${width}"/>`;
}

export function text(x: number, y: number, content: string, { size }: { size: number }): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}">${escapeXml(content)}</text>`;
}

export function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
