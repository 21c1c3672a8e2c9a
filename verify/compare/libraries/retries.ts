/** For libraries that count tries instead of time. */
export function retriesWithin(waitMs: number, retryDelayMs: number): number {
  return Math.ceil(waitMs / retryDelayMs);
}
