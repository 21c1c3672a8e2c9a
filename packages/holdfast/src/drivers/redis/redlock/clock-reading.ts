/**
 * Bounds of the difference between a node's clock and the client's clock, ms. The lower bound is the server time of a reply minus the
 * time of its receipt. The upper bound is the server time minus the time at which the request was sent.
 */
export interface ClockReading {
  readonly minMs: number;
  readonly maxMs: number;
  /** Enough other nodes had the same time. A later reading does not change this. */
  wasInTime: boolean;
}

/** @param sentAt when the request was sent, or the earliest time of a notification, on the scale of `clock.now()` */
export function readingOf(serverMicros: number, sentAt: number, receivedAt: number): ClockReading {
  const serverMs = serverMicros / 1000;
  return { minMs: serverMs - receivedAt, maxMs: serverMs - sentAt, wasInTime: false };
}
