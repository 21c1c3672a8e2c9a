import type { AsyncResource } from "node:async_hooks";

import type { Lease } from "holdfast";

import type { ModelRequest, Outcome } from "./reentrant-model.ts";
import type { Step } from "./reentrant-steps.ts";

type AcquireStep = Extract<Step, { acquire: string }>;

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

/** Creates the request of a step. @param requests all earlier requests */
export function createRequest(
  { acquire, by, as, ttlMs, renew, waitMs }: AcquireStep,
  requests: readonly PlayedRequest[],
  now: number,
): PlayedRequest {
  const works = requests.filter(({ scope }) => scope);
  const inside = as && "inside" in as ? works.at(-1 - as.inside) : undefined;
  const session = as && "session" in as ? `${by} ${as.session}` : undefined;
  const id = requests.length;
  return {
    id,
    by: inside?.by ?? by,
    session,
    inside,
    isWork: acquire === "work",
    ttlMs: renew ? Infinity : ttlMs,
    deadline: waitMs === null ? null : now + waitMs,
    controller: new AbortController(),
    root: inside?.root ?? session ?? String(id),
    lease: undefined,
    signal: undefined,
    scope: undefined,
    finish: () => undefined,
    outcome: undefined,
    wasReported: false,
  };
}
