import { InvalidArgumentError, Option } from "commander";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads "500ms", "30s", "5m", "2h", "1d" as milliseconds. A number without a unit is refused, except 0, because seconds and milliseconds
 * are easily confused.
 */
export function duration(text: string): number {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (text === "0") {
    return 0;
  }
  if (unit === "") {
    throw new InvalidArgumentError("Expected a duration such as 500ms, 30s, 5m, 2h or 1d.");
  }
  return Math.round(Number(number) * (unitMs[unit] as number));
}

/** Reads a duration, or `forever`. */
export function durationOrForever(text: string): number {
  return text === "forever" ? Infinity : duration(text);
}

/** Formats a duration with at most two units: "3m 20s". */
export function formatDuration(ms: number): string {
  if (ms === Infinity) {
    return "forever";
  }
  if (ms < 1_000) {
    return `${Math.round(ms)}ms`;
  }
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

/** An option with a duration. The help shows its default in the same form. */
export function timeOption(
  flags: string,
  description: string,
  parse: (text: string) => number,
  byDefault: string,
): Option {
  return new Option(flags, description).argParser(parse).default(parse(byDefault), byDefault);
}
