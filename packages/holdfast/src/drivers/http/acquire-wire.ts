import type { AcquireRequest } from "../../driver.ts";
import type { Instant } from "../../runtime/clock.ts";
import type { Validity } from "../../validity.ts";
import { bodyOf, type HttpRequestSpec } from "./client.ts";
import { leaseOf, problemOf } from "./problems.ts";
import { eventsOf } from "./sse.ts";
import type { TransportReply } from "./transport.ts";
import type { WireAcquire, WireLease, WireProblem } from "./wire.ts";

/** The longest wait that the service accepts. */
export const maxWaitMs = 86_400_000;

export type AcquireReply =
  | { readonly granted: WireLease; readonly sent: Instant }
  | { readonly problem: WireProblem }
  | { readonly timedOut: true };

/** Called while a reply arrives. */
export interface ReplyProgress {
  /** Called with each chunk of the event stream. */
  readonly received: () => void;
  /** Called when the service reports that the request is in the queue. */
  readonly waiting: () => void;
}

/** The HTTP request for one acquire. Only a request with a deadline accepts a grant with the short validity of a claim. */
export function acquireSpec(
  request: AcquireRequest,
  { waitMs, claimMs, owner }: { readonly waitMs: number; readonly claimMs: number; readonly owner: string },
): HttpRequestSpec {
  const { key, lockMode, ttlMs, info } = request;
  const waits = request.deadline !== null;
  const body: WireAcquire = {
    key,
    ...(lockMode?.kind === "read-write" && { mode: lockMode.mode }),
    ...(lockMode?.kind === "semaphore" && {
      mode: "semaphore",
      limit: lockMode.limit,
      permits: lockMode.permits,
    }),
    ttlMs,
    waitMs: Math.min(Math.ceil(waitMs), maxWaitMs),
    ...(waits && { claimMs: Math.min(ttlMs, claimMs) }),
    ...info,
    owner: info?.owner ?? owner,
  };
  return { method: "POST", path: "/v1/leases", body };
}

/** Reads the events of a waiting request until its grant or problem. Rejects if the stream ends before. */
export async function readReply(
  response: TransportReply,
  sent: Instant,
  { received, waiting }: ReplyProgress,
): Promise<AcquireReply> {
  const { status, contentType } = response;
  if (!contentType.startsWith("text/event-stream")) {
    const body: unknown = await bodyOf(response);
    return { problem: problemOf({ status, body }) };
  }
  for await (const { event, data } of eventsOf(response.body, received)) {
    if (event === "waiting") {
      waiting();
    } else if (event === "granted") {
      return { granted: leaseOf(status, JSON.parse(data)), sent };
    } else if (event === "problem") {
      return { problem: problemOf({ status, body: JSON.parse(data) as unknown }) };
    }
  }
  throw new Error("the stream ended");
}

/** The validity of a lease, from the sending of the request. After a wait it says nothing, so the client renews such a lease first. */
export function validityOf({ validMs }: Pick<WireLease, "validMs">, sent: Instant): Validity {
  return { until: sent.now + validMs, untilWall: sent.wall + validMs };
}
