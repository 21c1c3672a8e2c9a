import type { Clock, Instant } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import { closedError, type LockError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import { engineError, isTransient, timeoutError, withServer } from "./errors.ts";
import {
  cleanUpOperation,
  type HandedOverGrant,
  type PendingRelease,
  type ReleaseListener,
  type ReleaseOperation,
} from "./pending-release.ts";
import { lateTimerMs } from "./poll-delays.ts";
import { ReleaseCall, type ReleaseDeadline } from "./release-call.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "./server.ts";

const maxBackoffMs = 2_000;

/**
 * Removes grants and queue entries from their server: released grants, abandoned requests, and what late replies report of them.
 *
 * A release is repeated until the server has answered it and no earlier request with its token can be executed any longer. It also ends
 * when the residue has expired on the server.
 */
export class ReleaseQueue {
  readonly #serverFor: (keys: LockKeys) => RedisServer;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #budgetMs: number;
  /** Receives the next holder of this client that the reply to a release names. */
  readonly onHandedOver: (grant: HandedOverGrant, sent: Instant) => void;
  /** Receives the token for which a node of a quorum votes after a release. Empty: the node has no vote, or the token is unknown. */
  readonly onVotedFor: (token: string) => void;
  readonly #retries: TimerQueue<ReleaseCall>;
  /** The deadlines of the callers, which do not change when a call is repeated. */
  readonly #deadlines: TimerQueue<ReleaseDeadline>;
  #isClosed = false;
  readonly #cleanUps = new Set<Promise<unknown>>();
  /** The newest open call of each token. The earlier ones follow as {@link ReleaseCall.previous}. */
  readonly #releasesByToken = new TokenMap<ReleaseCall>();

  constructor(
    serverFor: (keys: LockKeys) => RedisServer,
    clock: Clock,
    random: Random,
    budgetMs: number,
    onHandedOver: (grant: HandedOverGrant, sent: Instant) => void = () => undefined,
    onVotedFor: (token: string) => void = () => undefined,
  ) {
    this.onHandedOver = onHandedOver;
    this.onVotedFor = onVotedFor;
    this.#serverFor = serverFor;
    this.#clock = clock;
    this.#random = random;
    this.#budgetMs = budgetMs;
    this.#retries = new TimerQueue(clock, (release) => this.send(release));
    this.#deadlines = new TimerQueue(clock, (deadline) => this.#deadlinePassed(deadline));
  }

  /**
   * @returns whether the token still had the grant
   * @throws {EngineError} after the budget. The release is then repeated in the background.
   */
  release(pending: PendingRelease): Promise<boolean> {
    return this.#begin(pending, "release");
  }

  downgrade(pending: PendingRelease): Promise<boolean> {
    return this.#begin(pending, "downgrade");
  }

  #begin(pending: PendingRelease, name: ReleaseOperation): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.enqueue(pending, { released: resolve, failed: reject }, name);
    });
  }

  /** Like {@link release}, without a promise for each node of a quorum. @param args the operation, which several nodes may share */
  enqueue(
    pending: PendingRelease,
    listener: ReleaseListener,
    name: ReleaseOperation = "release",
    args: readonly string[] = cleanUpOperation(pending, name),
  ): void {
    this.#start(new ReleaseCall(this, name, args, pending, listener));
  }

  #start(release: ReleaseCall): void {
    const { token, keys, until, earlier } = release.pending;
    const lateMs = this.#serverFor(keys).msUntil(earlier?.latest ?? 0);
    release.until = until + lateMs; // a request that is executed late has a grant that ends late
    release.previous = this.#releasesByToken.get(token);
    this.#releasesByToken.set(token, release);
    this.#deadlines.schedule(release.deadline, this.#clock.now() + this.#budgetMs);
    this.send(release);
  }

  /** Reports the timeout to the listener. The release is still repeated. */
  #deadlinePassed(deadline: ReleaseDeadline): void {
    const { release, dueAt } = deadline;
    const now = this.#clock.now();
    if (now - dueAt > lateTimerMs && !deadline.hasGracePeriod) {
      deadline.hasGracePeriod = true; // only once, because a busy process may always be late
      this.#deadlines.schedule(deadline, now + lateTimerMs); // the process was late, so the reply may have arrived unread
      return;
    }
    const { error = timeoutError(this.#budgetMs), listener } = release;
    listener.failed(this.#errorOf(release, error));
  }

  /** The token is requested again. Cancels its unanswered clean-ups, because they must not arrive after the new request. */
  cancelCleanUp(token: string): void {
    for (let release = this.#releasesByToken.get(token); release; release = release.previous) {
      if (release.isCleanup) {
        this.ended(release);
        release.report(false, false);
      }
    }
  }

  /** Cleans up a grant or queue entry in the background. */
  cleanUp(pending: PendingRelease): void {
    const done = new Promise<boolean>((resolve, reject) => {
      const args = cleanUpOperation(pending, "release");
      const listener = { released: resolve, failed: reject };
      const release = new ReleaseCall(this, "release", args, pending, listener);
      release.isCleanup = true;
      this.#start(release);
    }).catch((error: unknown) => {
      publish("node", () => ({
        node: this.#serverFor(pending.keys).connection.name,
        event: "release-delayed",
        detail: String(error),
      }));
    });
    this.#cleanUps.add(done);
    void done.then(() => this.#cleanUps.delete(done));
  }

  /** The server found the grant for this call. Other calls for the token may find none, but the grant was held when they began. */
  grantFound({ pending: { token } }: ReleaseCall): void {
    for (let release = this.#releasesByToken.get(token); release; release = release.previous) {
      release.wasFound = true;
    }
  }

  /** The call is not sent again: answered, expired, cancelled, refused for good, or the queue is closed. */
  ended(release: ReleaseCall): void {
    release.isEnded = true;
    this.#retries.cancel(release); // a late reply may have arrived before the repeat
    this.#deadlines.cancel(release.deadline);
    const { token } = release.pending;
    const newest = this.#releasesByToken.get(token);
    if (newest !== release) {
      for (let later = newest; later; later = later.previous) {
        if (later.previous === release) {
          later.previous = release.previous;
        }
      }
    } else if (release.previous) {
      this.#releasesByToken.set(token, release.previous);
    } else {
      this.#releasesByToken.delete(token);
    }
  }

  /** Resolves when every clean-up is answered, or has used its budget. */
  async idle(): Promise<void> {
    await Promise.all(this.#cleanUps);
  }

  close(): void {
    this.#isClosed = true;
    for (const release of Array.from(this.#retries.items())) {
      this.#abandon(release, closedError(release.pending.key));
    }
  }

  send(release: ReleaseCall): void {
    const node = this.#serverFor(release.keys);
    if (node.isTimeKnown) {
      node.perform(release);
    } else {
      node.handshake().then(
        () => {
          if (!release.isEnded) {
            node.perform(release);
          }
        },
        (error: unknown) => release.failed(error),
      );
    }
  }

  /** The server replies again. Failed releases are sent at once. */
  recovered(node: RedisServer): void {
    for (const release of Array.from(this.#retries.items())) {
      if (release.failures > 0 && this.#serverFor(release.keys) === node) {
        this.#retries.cancel(release);
        this.send(release);
      }
    }
  }

  #errorOf({ keys, pending: { key } }: ReleaseCall, error: unknown): LockError {
    return withServer(engineError(error, key, "unknown"), this.#serverFor(keys).connection);
  }

  /** Repeats a failed release after a pause, until its residue has expired on the server. */
  retry(release: ReleaseCall, error: unknown): void {
    const now = this.#clock.now();
    const isRetried = isTransient(error) && now < release.until && !this.#isClosed;
    if (isRetried) {
      this.#retries.schedule(release, now + backoffMs(this.#random, release.failures, maxBackoffMs));
    } else {
      this.#abandon(release, this.#errorOf(release, error));
    }
  }

  /**
   * The server has answered. If a request with the same token may still be executed, the release is repeated after the latest time of
   * that request. Most of these requests were answered before the release, because a connection keeps the order.
   */
  answered(release: ReleaseCall, serverMicros: number): void {
    const now = this.#clock.now();
    const delayMs = (release.pending.earlier?.latest ?? 0) - serverMicros / 1000;
    if (delayMs < 0 || now >= release.until || release.isEnded || this.#isClosed) {
      this.ended(release);
    } else {
      this.#deadlines.cancel(release.deadline);
      release.isCleanup = true;
      release.failures = 0;
      this.#retries.schedule(release, Math.min(now + delayMs + 1, release.until));
    }
  }

  #abandon(release: ReleaseCall, error: unknown): void {
    this.ended(release);
    if (!release.isReported) {
      release.listener.failed(error);
    }
  }
}
