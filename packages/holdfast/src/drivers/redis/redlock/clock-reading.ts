/**
 * What an answer or a message says of its node's clock: the node's time less ours when it was heard, and less ours when what it says
 * begins to count here, ms. The node's clock is between the two.
 */
export interface ClockReading {
  readonly leastMs: number;
  readonly mostMs: number;
  /** Enough other nodes had the same time. That stays so. */
  wasInTime: boolean;
}

/** @param begunAt when what it says begins to count, on the scale of `clock.now()` */
export function readingOf(serverMicros: number, begunAt: number, heardAt: number): ClockReading {
  const serverMs = serverMicros / 1000;
  return { leastMs: serverMs - heardAt, mostMs: serverMs - begunAt, wasInTime: false };
}
