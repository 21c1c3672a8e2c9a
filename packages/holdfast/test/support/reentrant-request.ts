import type { AsyncResource } from "node:async_hooks";

import type { Lease } from "holdfast";

import type { ModelRequest, Outcome } from "./reentrant-model.ts";

export interface RequestOptions {
  readonly ttlMs: number;
  readonly renew: boolean;
  readonly signal: AbortSignal;
  readonly session: string | undefined;
}

/** One acquire, from the asking to the release. */
export interface PlayedRequest extends ModelRequest {
  readonly by: number;
  readonly inside: PlayedRequest | undefined;
  readonly controller: AbortController;
  /** Whoever shares a hold with it has the same. */
  readonly root: string;
  lease: Lease | undefined;
  signal: AbortSignal | undefined;
  /** Of work: where it runs, and its end. */
  scope: AsyncResource | undefined;
  finish: () => void;
  /** Why it ended. */
  outcome: Outcome | undefined;
  /** Whether it had been told of a loss when it was released. */
  wasReported: boolean;
}

export function outcomeSeenOf({ lease, outcome }: PlayedRequest): Outcome {
  if (outcome !== undefined) {
    return outcome;
  } else if (!lease) {
    return "waiting";
  }
  return lease.remainingMs() > 0 ? "held" : "lost";
}
