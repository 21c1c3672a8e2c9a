/** Maps a value to a position from 0 to 1, and lists the values to print at the axis. */
export interface Scale {
  positionOf(value: number): number;
  readonly ticks: readonly number[];
}

const maxTicks = 4;

/** A scale from zero to at least the largest value. */
export function linearScale(values: readonly number[]): Scale {
  const largest = Math.max(0, ...values.filter(Number.isFinite));
  const step = roundStep(largest / maxTicks);
  const steps = Math.max(1, Math.ceil(largest / step));
  const end = step * steps;
  const ticks = Array.from({ length: steps + 1 }, (_, index) => rounded(step * index));
  return { positionOf: (value) => Math.min(1, Math.max(0, value) / end), ticks };
}

/**
 * A scale from the power of ten below the smallest value to the power of ten above the largest. Values of zero or less are at
 * position 0.
 */
export function logScale(values: readonly number[]): Scale {
  const positive = values.filter((value) => Number.isFinite(value) && value > 0);
  const from = Math.floor(Math.log10(Math.min(1, ...positive)));
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(1, ...positive))));
  const everyNth = Math.ceil((to - from) / (maxTicks + 1));
  const powers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  return {
    positionOf: (value) =>
      value > 0 ? Math.min(1, Math.max(0, (Math.log10(value) - from) / (to - from))) : 0,
    ticks: powers.filter((_, index) => index % everyNth === 0).map((power) => rounded(10 ** power)),
  };
}

/** Formats a number with few digits, for the label of a bar. */
export function compactNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${trimmed(value / 1e6, 2)} M`;
  if (size >= 1e4) return `${trimmed(value / 1e3, 1)} k`;
  if (size >= 100) return value.toFixed(0);
  return trimmed(value, size >= 10 ? 1 : 2);
}

/** The smallest number of the form 1, 2 or 5 times a power of ten that is not below `step`. */
function roundStep(step: number): number {
  if (step <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5, 10].find((factor) => factor * power >= step * 0.999) ?? 10) * power;
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

/** Removes the rounding errors of binary fractions. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
