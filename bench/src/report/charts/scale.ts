/** From a value to its place between 0 and 1, and the values that stand at the axis. */
export interface Scale {
  positionOf(value: number): number;
  readonly ticks: readonly number[];
}

const maxTicks = 4;

/** From zero to at least the largest. */
export function linearScale(values: readonly number[]): Scale {
  const largest = Math.max(0, ...values.filter(Number.isFinite));
  const step = roundStep(largest / maxTicks);
  const steps = Math.max(1, Math.ceil(largest / step));
  const end = step * steps;
  const ticks = Array.from({ length: steps + 1 }, (_, index) => rounded(step * index));
  return { positionOf: (value) => Math.min(1, Math.max(0, value) / end), ticks };
}

/** From the power of ten below the smallest to that above the largest. What is not above zero stands at the beginning. */
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

/** In as many digits as one wants to read at a bar. */
export function compactNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${trimmed(value / 1e6, 2)} M`;
  if (size >= 1e4) return `${trimmed(value / 1e3, 1)} k`;
  if (size >= 100) return value.toFixed(0);
  return trimmed(value, size >= 10 ? 1 : 2);
}

/** 1, 2 or 5 times a power of ten, not below the given one. */
function roundStep(step: number): number {
  if (step <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5, 10].find((factor) => factor * power >= step * 0.999) ?? 10) * power;
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}

/** Without what binary fractions leave behind the decimal point. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
