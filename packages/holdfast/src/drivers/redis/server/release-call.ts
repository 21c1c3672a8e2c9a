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
  /** When the server will have forgotten, on the scale of `clock.now()`. */
  until = 0;
  readonly deadline: ReleaseDeadline = new ReleaseDeadline(this);
  /** How it failed last. */
  error: unknown;
  readonly args: readonly string[];
  readonly listener: ReleaseListener;
  readonly #queue: ReleaseCallHost;
  readonly #isRelease: boolean;
  /** Nobody waits for it: a request takes back what its own repeats left. */
  isCleanup = false;
  /** The release of the same token that began before this one. */
  previous: ReleaseCall | undefined;
  /** Another release of the token found the grant. */
  wasFound = false;
  #wasReleased = false;
  /** It may have been carried out by a server that did not answer. */
  #isUncertain = false;
  /** Its listener has the outcome. */
  isReported = false;
  /** It is not sent again. */
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
    // Of a usual release 1: it was ours, and nothing is left.
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
      this.#queue.send(this); // dead waiters are left to be passed over
      return;
    }
    this.#queue.answered(this, serverMicros);
    // A repeat, of ours or by the client library, finds that the attempt whose answer was lost has released: it was sent while the
    // grant was ours.
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

/** Until when a release is waited for. */
export class ReleaseDeadline implements Scheduled {
  dueAt = 0;
  slot = -1;
  hasGracePeriod = false;
  readonly release: ReleaseCall;

  constructor(release: ReleaseCall) {
    this.release = release;
  }
}
