const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Formats a duration as the command line does, with at most two units: "3m 20s". */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return "forever";
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}

/** Formats a time that counts up or down each second: whole seconds, so that the text does not flicker. */
export function formatTicking(ms: number): string {
  return ms < 1_000 ? "<1s" : formatDuration(Math.floor(ms / 1_000) * 1_000);
}

/** Formats a point in time in the browser's time zone: "2026-11-26 14:05:09". */
export function formatTime(ms: number): string {
  return new Date(ms).toLocaleString("sv-SE");
}

/** The browser's time zone at a point in time: "GMT+1". */
export function timeZone(ms: number): string {
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(ms);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

/** Reads "500ms", "30s", "5m", "2h" or "1d" as milliseconds. Undefined: another text. */
export function parseDuration(text: string): number | undefined {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = unitMs[unit];
  return factor === undefined ? undefined : Number(number) * factor;
}

const grouping = new Intl.NumberFormat("en");

/** Formats a count with its thousands apart. */
export function grouped(count: number): string {
  return grouping.format(count).replaceAll(",", "\u202f");
}
