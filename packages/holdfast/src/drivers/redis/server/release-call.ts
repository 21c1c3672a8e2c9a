import type { Instant } from "../../../runtime/clock.ts";
import type { Scheduled } from "../../../runtime/timer-queue.ts";
import { outcomeOf, serverRefusal } from "./errors.ts";
import type {
  HandedOverGrant,
  PendingRelease,
  ReleaseListener,
  ReleaseOperation,
} from "./pending-release.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Operation, Reply } from "../protocol/operation.ts";

/** The release queue, as its calls need it. */
interface ReleaseCallHost {
  readonly onHandedOver: (grant: HandedOverGrant, sent: Instant) => void;
  readonly onVotedFor: (token: string) => void;
  send(release: ReleaseCall): void;
  retry(release: ReleaseCall, error: unknown): void;
  answered(release: ReleaseCall, serverMicros: number): void;
  grantFound(release: ReleaseCall): void;
}

export class ReleaseCall implements Operation, Scheduled {
  dueAt = 0;
  slot = -1;
  failures = 0;
  readonly pending: PendingRelease;
  /** The time at which the residue has expired on the server, on the scale of `clock.now()`. */
  until = 0;
  readonly deadline: ReleaseDeadline = new ReleaseDeadline(this);
  /** The last failure. */
  error: unknown;
  readonly args: readonly string[];
  readonly listener: ReleaseListener;
  readonly #queue: ReleaseCallHost;
  readonly #isRelease: boolean;
  /** No caller waits for this call. It cleans up the residue of a request, and a later request with the same token cancels it. */
  isCleanup = false;
  /** The earlier call for the same token. */
  previous: ReleaseCall | undefined;
  /** Another call for the same token has released the grant. */
  wasFound = false;
  #wasReleased = false;
  /** The server may have executed an attempt without a reply. */
  #isUncertain = false;
  /** The listener has received the outcome. */
  isReported = false;
  /** The call is not sent again. */
  isEnded = false;

  constructor(
    queue: ReleaseCallHost,
    name: ReleaseOperation,
    args: readonly string[],
    pending: PendingRelease,
    listener: ReleaseListener,
  ) {
    this.#queue = queue;
    this.pending = pending;
    this.#isRelease = name !== "downgrade";
    this.args = args;
    this.listener = listener;
  }

  get keys(): LockKeys {
    return this.pending.keys;
  }

  answered({ value, sameConnection, sent, serverMicros }: Reply): void {
    // The most frequent reply is 1: the token had the grant, and the lock is free.
    const [released, more, token, first, last, ttlMs] = Array.isArray(value)
      ? (value as unknown[])
      : [value, 0];
    if (released === "error") {
      this.failed(serverRefusal(String(more)));
      return;
    }
    if (Number(released) === 1) {
      this.#wasReleased = true;
      this.#queue.grantFound(this);
    }
    if (ttlMs !== undefined) {
      const grant = { token: String(token), first: Number(first), last: Number(last), ttlMs: Number(ttlMs) };
      this.#queue.onHandedOver(grant, sent);
    } else if (typeof token === "string") {
      this.#queue.onVotedFor(token);
    }
    if (Number(more) === 1 && !this.isEnded) {
      this.#queue.send(this); // dead waiters are still in the queue
      return;
    }
    this.#queue.answered(this, serverMicros);
    // A repeat finds no grant if an attempt with a lost reply has released the grant. The attempt was sent while the grant was held.
    const isRepeat = this.#isUncertain || !sameConnection;
    const wasOurs = this.#wasReleased || (this.#isRelease && (isRepeat || this.wasFound));
    this.report(wasOurs, this.#wasReleased);
  }

  report(wasReleased: boolean, isConfirmed: boolean): void {
    if (!this.isReported) {
      this.isReported = true;
      this.listener.released(wasReleased, isConfirmed);
    }
  }

  failed(error: unknown): void {
    if (!this.isEnded) {
      this.failures += 1;
      this.error = error;
      this.#isUncertain ||= outcomeOf(error) === "unknown";
      this.#queue.retry(this, error);
    }
  }
}

/** The time until which a caller waits for its release. */
export class ReleaseDeadline implements Scheduled {
  dueAt = 0;
  slot = -1;
  hasGracePeriod = false;
  readonly release: ReleaseCall;

  constructor(release: ReleaseCall) {
    this.release = release;
  }
}
