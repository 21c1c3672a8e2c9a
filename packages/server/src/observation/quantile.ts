/** The value that this part of the sorted values does not exceed, in whole milliseconds; 0 without values. */
export function quantile(sorted: readonly number[], part: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
}
