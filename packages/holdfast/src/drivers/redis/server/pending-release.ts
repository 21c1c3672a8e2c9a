import type { LockKeys } from "../protocol/keys.ts";
import { withProposedFence } from "../protocol/operation.ts";

/** How long a server retains a queue after its last change. A waiter without a deadline loses its entry after this time. */
export const queueTtlMs = 60_000;

/** The time at which the queue entry of a waiter with this deadline has expired on the server. */
export function queueEntryExpiry(now: number, deadline: number): number {
  return deadline === Infinity ? now + queueTtlMs : deadline;
}

/** The requests that were sent before a release with the same token. Their replies may arrive during the release. */
export interface EarlierRequests {
  /** The latest server time, ms, at which one of the requests may still be executed; 0: none can. */
  readonly latest: number;
}

/** A grant or queue entry to remove from the server, or the residue of a request with unknown outcome. */
export interface PendingRelease {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  /** The queue entry after its token. Empty if the token has no queue entry. */
  readonly queueArgs: string;
  /** For a node of a quorum: the fencing number of the next holder, if this release grants the lock. */
  readonly proposedFence?: string | undefined;
  /** For a single server: this client created the token. The reply may then name the next holder of this client, without a notification. */
  readonly isOwn?: boolean | undefined;
  /** The time at which the residue has expired on the server, on the scale of `clock.now()`. */
  readonly until: number;
  /** The requests with this token that the server may still execute. Absent: none. */
  readonly earlier?: EarlierRequests | undefined;
}

/** The arguments of the operation that removes a grant or queue entry. */
export function cleanUpOperation(
  { token, queueArgs, proposedFence, isOwn }: PendingRelease,
  name: ReleaseOperation,
): readonly string[] {
  if (proposedFence !== undefined) {
    return withProposedFence([name, token, queueArgs], proposedFence);
  }
  return name === "release" ? [name, token, queueArgs, isOwn === true ? "1" : "0"] : [name, token, queueArgs];
}

/** The grant of the next holder, which the reply to a release reports to a request of this client. */
export interface HandedOverGrant {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly ttlMs: number;
}

/** `downgrade` turns the grant of a writer into the grant of a reader. */
export type ReleaseOperation = "release" | "downgrade";

/** Receives the outcome of a release. */
export interface ReleaseListener {
  /**
   * May follow {@link failed}, because the release is repeated in the background.
   * @param isConfirmed the server itself reported that it released the grant
   */
  released(wasReleased: boolean, isConfirmed: boolean): void;
  /** The release had no reply in time, or a permanent failure. */
  failed(error: unknown): void;
}
