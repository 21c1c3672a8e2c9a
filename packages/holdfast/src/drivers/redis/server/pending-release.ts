import type { LockKeys } from "../protocol/keys.ts";
import { withProposedFence } from "../protocol/operation.ts";

/** A server keeps a queue for so long after its last change, and in it the place of who waits without end. */
export const queueTtlMs = 60_000;

/** When a server has forgotten a place in its queue by itself: of who waits until that deadline. */
export function queueEntryExpiry(now: number, deadline: number): number {
  return deadline === Infinity ? now + queueTtlMs : deadline;
}

/** What is to be taken back from the server: a grant, a place in the queue, or whatever an unanswered request left there. */
export interface PendingRelease {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  /** What our queue member says after the token; "" where we have no place there. */
  readonly queueArgs: string;
  /** Of a quorum's node: the fencing number of who is granted the lock by this. */
  readonly proposedFence?: string | undefined;
  /** Of one server: the token was made here, so the answer may name the next holder of this client instead of a message. */
  readonly isOwn?: boolean | undefined;
  /** When the server will have forgotten it by itself, on the scale of `clock.now()`. */
  readonly until: number;
  /** The latest server time, ms, at which a request for it may still be carried out; absent or 0: none is under way. */
  readonly latest?: number | undefined;
}

/** What a node is told to take a leftover back. */
export function cleanUpOperation(
  { token, queueArgs, proposedFence, isOwn }: PendingRelease,
  name: ReleaseOperation,
): readonly string[] {
  if (proposedFence !== undefined) {
    return withProposedFence([name, token, queueArgs], proposedFence);
  }
  return name === "release" ? [name, token, queueArgs, isOwn === true ? "1" : "0"] : [name, token, queueArgs];
}

/** The grant of a request of this client, to which a release has handed the lock over. */
export interface HandedOverGrant {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly ttlMs: number;
}

/** `downgrade`: what of a writer a reader does not need. */
export type ReleaseOperation = "release" | "downgrade";

/** Who waits for a release. */
export interface ReleaseListener {
  /**
   * Behind {@link failed}, too, as it goes on.
   * @param isConfirmed the server itself said that it released
   */
  released(wasReleased: boolean, isConfirmed: boolean): void;
  /** No answer in time, or none that could come by itself. */
  failed(error: unknown): void;
}
