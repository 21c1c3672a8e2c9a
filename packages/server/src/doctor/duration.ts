const units = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "m"],
  [1, "s"],
] as const;

/** Formats a duration with at most two units: "3m 20s". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) {
    return `${Math.round(ms)}ms`;
  }
  let rest = Math.round(ms / 1_000);
  const parts: string[] = [];
  for (const [seconds, unit] of units) {
    const count = Math.floor(rest / seconds);
    if (count > 0) parts.push(`${count}${unit}`);
    if (parts.length === 2) break;
    rest %= seconds;
  }
  return parts.join(" ");
}
