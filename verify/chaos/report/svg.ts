/** An image of its own, on white. */
export function svg(width: number, height: number, parts: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif">`;
  return [head, rect(0, 0, width, height, "#fff"), ...parts.filter((part) => part !== ""), "</svg>", ""].join(
    "\n",
  );
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
  return title === undefined ? `${shape}/>` : `${shape}><title>${escaped(title)}</title></rect>`;
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

export function text(x: number, y: number, words: string, { size }: { size: number }): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}">${escaped(words)}</text>`;
}

export function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
