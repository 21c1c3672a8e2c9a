/**
 * What an answer or a message says of its node's clock: the node's time less ours when it was heard, and less ours when what it says
 * begins to count here, ms. The node's clock is between the two.
 */
export interface ClockReading {
  readonly minMs: number;
  readonly maxMs: number;
  /** Enough other nodes had the same time. That stays so. */
  wasInTime: boolean;
}

/** @param sentAt when what it says begins to count, on the scale of `clock.now()` */
export function readingOf(serverMicros: number, sentAt: number, receivedAt: number): ClockReading {
  const serverMs = serverMicros / 1000;
  return { minMs: serverMs - receivedAt, maxMs: serverMs - sentAt, wasInTime: false };
}
