/** Converts a time to a number of tries, for libraries that count tries. */
export function retriesWithin(waitMs: number, retryDelayMs: number): number {
  return Math.ceil(waitMs / retryDelayMs);
}
