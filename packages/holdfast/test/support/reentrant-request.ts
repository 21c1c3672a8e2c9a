import type { AsyncResource } from "node:async_hooks";

import type { Lease } from "holdfast";

import type { ModelRequest, Outcome } from "./reentrant-model.ts";

export interface RequestOptions {
  readonly ttlMs: number;
  readonly renew: boolean;
  readonly signal: AbortSignal;
  readonly session: string | undefined;
}

/** One acquire, from its request to its release. */
export interface PlayedRequest extends ModelRequest {
  readonly by: number;
  readonly inside: PlayedRequest | undefined;
  readonly controller: AbortController;
  /** An identifier that all requests of one hold share. */
  readonly root: string;
  lease: Lease | undefined;
  signal: AbortSignal | undefined;
  /** The context in which its work runs, and the end of that work. */
  scope: AsyncResource | undefined;
  finish: () => void;
  /** The outcome, if the request has ended. */
  outcome: Outcome | undefined;
  /** Whether its signal was aborted before the release. */
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
