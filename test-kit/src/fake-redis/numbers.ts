import { notAFloat, notAnInteger, ServerError } from "./reply.ts";

/** Formats like C's `%.17g`, as Redis formats scores and the numbers that a script passes to a command. */
export function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) {
    return String(value);
  } else if (!Number.isFinite(value)) {
    return String(value).replace("NaN", "nan").replace("Infinity", "inf");
  }
  const text = Math.abs(value) < 1e-4 ? value.toExponential(16) : value.toPrecision(17);
  return text.replace(/\.?0+(?=e|$)/, "").replace(/e([+-])(\d)$/, "e$10$2");
}

/** @param complaint what Redis answers where the text is none */
export function integerOf(text: string, complaint: string = notAnInteger): number {
  const value = /^(0|-?[1-9]\d*)$/.test(text) ? Number(text) : NaN;
  if (!(Math.abs(value) < 2 ** 63)) {
    throw new ServerError(complaint);
  }
  return value;
}

/** @param complaint what Redis answers where the text is none */
export function floatOf(text: string, complaint: string = notAFloat): number {
  if (/^[+-]?inf(inity)?$/i.test(text)) {
    return text.startsWith("-") ? -Infinity : Infinity;
  }
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value)) {
    throw new ServerError(complaint);
  }
  return value;
}
