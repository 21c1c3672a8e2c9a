import { publish } from "../../../diagnostics.ts";
import type { QuorumNode } from "./quorum-node.ts";
import type { Quarantine } from "./restart-guard.ts";

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

/** An estimate of a node's clock with a larger error cannot show that another clock agrees. */
const maxErrorMs = 500;

const unknownTime: Quarantine = {
  reason: "too few other clocks are known to agree with its clock",
  remainingMs: null,
  isMomentary: true,
};
const clockIsOff: Quarantine = { reason: "its clock is off", remainingMs: null, isMomentary: false };

interface ClockAgreementOptions {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  readonly maxClockDifferenceMs: number;
  /** The median offset of the nodes' clocks, in microseconds; undefined: too few clocks are known. */
  readonly medianOffset: () => number | undefined;
}

/**
 * Decides whether a node's clock is right: a majority of the nodes, the node included, must have the same time. If two majorities both
 * count a node, the other nodes limit how far the node's clock can have been set between the two votes. An error of the estimate is
 * harmless, because a vote is valid from the earliest possible moment and waits from the latest.
 */
export class ClockAgreement {
  readonly #options: ClockAgreementOptions;
  /** By node: the node's clock was reported as off. */
  readonly #isOff: boolean[] = [];

  constructor(options: ClockAgreementOptions) {
    this.#options = options;
  }

  /**
   * Why the node's clock keeps the node from voting; undefined: the clock is right.
   * @param reading the node's clock at the reply or notification; undefined: the latest estimate
   */
  quarantineOf(
    node: QuorumNode,
    reading: ClockReading | undefined = estimateOf(node),
  ): Quarantine | undefined {
    if (reading === undefined) {
      return unknownTime;
    } else if (reading.wasInTime) {
      return undefined;
    }
    const { nodes, majority, maxClockDifferenceMs } = this.#options;
    let agreeing = 1;
    let disagreeing = 0;
    for (const other of nodes) {
      const estimate = other === node ? undefined : estimateOf(other);
      if (estimate) {
        const aheadMs = reading.minMs - estimate.minMs;
        const behindMs = estimate.maxMs - reading.maxMs;
        agreeing += Math.max(aheadMs, behindMs) <= maxClockDifferenceMs ? 1 : 0;
        const certainMs = Math.max(reading.minMs - estimate.maxMs, estimate.minMs - reading.maxMs);
        disagreeing += certainMs > maxClockDifferenceMs ? 1 : 0;
      }
    }
    reading.wasInTime = agreeing >= majority;
    const isOff = disagreeing >= majority;
    this.#reportClock(node, isOff);
    return reading.wasInTime ? undefined : isOff ? clockIsOff : unknownTime;
  }

  #reportClock(node: QuorumNode, isOff: boolean): void {
    const wasOff = this.#isOff[node.index] === true;
    this.#isOff[node.index] = isOff;
    if (isOff && !wasOff) {
      const { offsetMicros } = node.server.serverClock;
      const clockOffsetMs = ((offsetMicros ?? 0) - (this.#options.medianOffset() ?? 0)) / 1000;
      publish("node", () => ({ node: node.name, event: "clock-off", clockOffsetMs }));
    }
  }
}

/** The estimate of a node's clock; undefined: the clock is unknown, or the error is too large. */
function estimateOf({ server }: QuorumNode): ClockReading | undefined {
  const { offsetMicros, errorMs } = server.serverClock;
  if (offsetMicros === undefined || errorMs > maxErrorMs) {
    return undefined;
  }
  const atMs = offsetMicros / 1000;
  return { minMs: atMs - errorMs, maxMs: atMs + errorMs, wasInTime: false };
}
