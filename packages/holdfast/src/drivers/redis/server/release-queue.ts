import type { Clock, Instant } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import { closedError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineError, isTransient, timeoutError } from "./errors.ts";
import { GrantsInUse, type GrantInUse } from "./grants-in-use.ts";
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
 * Decides for one server what must hold nothing there from now on: what was released or given up, and what the server tells of that is
 * not in use. Releases it, and goes on until the server has answered behind all requests for it, or has forgotten by itself.
 */
export class ReleaseQueue {
  readonly inUse: GrantsInUse;
  readonly #serverFor: (keys: LockKeys) => RedisServer;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #budgetMs: number;
  /** Tells of the next holder of this client that a release answered. */
  readonly onHandedOver: (grant: HandedOverGrant, sent: Instant) => void;
  /** Tells whom a quorum's node votes for behind a release; "": nobody, or it is not known. */
  readonly onVotedFor: (token: string) => void;
  readonly #retries: TimerQueue<ReleaseCall>;
  /** Who waits for an answer, whatever is sent meanwhile. */
  readonly #deadlines: TimerQueue<ReleaseDeadline>;
  #isClosed = false;
  readonly #cleanUps = new Set<Promise<unknown>>();
  /** The latest one of each token, while it goes on; the earlier ones follow as {@link ReleaseCall.previous}. */
  readonly #releasesByToken = new Map<string, ReleaseCall>();

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
    this.inUse = new GrantsInUse(clock);
    this.#serverFor = serverFor;
    this.#clock = clock;
    this.#random = random;
    this.#budgetMs = budgetMs;
    this.#retries = new TimerQueue(clock, (release) => this.send(release));
    this.#deadlines = new TimerQueue(clock, (deadline) => this.#deadlinePassed(deadline));
  }

  /** @returns whether it was still ours; rejects with an `EngineError` after the budget and goes on in the background */
  release(pending: PendingRelease): Promise<boolean> {
    const latest = this.inUse.end(pending.token);
    return this.#begin({ ...pending, latest }, "release");
  }

  downgrade(pending: PendingRelease): Promise<boolean> {
    return this.#begin(pending, "downgrade");
  }

  #begin(pending: PendingRelease, name: ReleaseOperation): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.enqueue(pending, { released: resolve, failed: reject }, name);
    });
  }

  /**
   * The server has told of a grant, or of a place, for which nobody waits.
   * @param use of the request that it was told, where it is a grant
   */
  cleanUpUnused(pending: PendingRelease, use?: GrantInUse): void {
    if (use?.isEnded !== false && !this.inUse.has(pending.token)) {
      this.cleanUp(pending);
    }
  }

  /** The same, where a promise for each node would be many. @param args what the node is told, where several are told the same */
  enqueue(
    pending: PendingRelease,
    listener: ReleaseListener,
    name: ReleaseOperation = "release",
    args: readonly string[] = cleanUpOperation(pending, name),
  ): void {
    this.#start(new ReleaseCall(this, name, args, pending, listener));
  }

  #start(release: ReleaseCall): void {
    const { token, keys, until, latest = 0 } = release.pending;
    const delayMs = latest - this.#serverFor(keys).serverClock.micros() / 1000;
    release.until = until + (latest > 0 ? Math.max(0, delayMs) : 0); // what comes so late lasts as long
    release.previous = this.#releasesByToken.get(token);
    this.#releasesByToken.set(token, release);
    this.#deadlines.schedule(release.deadline, this.#clock.now() + this.#budgetMs);
    this.send(release);
  }

  /** It goes on, and who waits for it is told that it does. */
  #deadlinePassed(deadline: ReleaseDeadline): void {
    const { release, dueAt } = deadline;
    const now = this.#clock.now();
    if (now - dueAt > lateTimerMs && !deadline.hasGracePeriod) {
      deadline.hasGracePeriod = true; // once: a busy process may always be late
      this.#deadlines.schedule(deadline, now + lateTimerMs); // the process was late: the answer may have arrived unread
      return;
    }
    const { error = timeoutError(this.#budgetMs), pending, listener } = release;
    listener.failed(engineError(error, pending.key, "unknown"));
  }

  /** The token is asked for again: what was to take it back and got no answer yet must not come behind that. */
  cancelCleanUp(token: string): void {
    for (let release = this.#releasesByToken.get(token); release; release = release.previous) {
      if (release.isCleanup) {
        this.ended(release);
        release.report(false, false);
      }
    }
  }

  /** The same for something that nobody waits for. */
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

  /** The server says that this one released: the other releases of its token find nothing, but the grant was ours when they began. */
  grantFound({ pending: { token } }: ReleaseCall): void {
    for (let release = this.#releasesByToken.get(token); release; release = release.previous) {
      release.wasFound = true;
    }
  }

  /** The server has answered, or has forgotten by itself. */
  ended(release: ReleaseCall): void {
    release.isEnded = true;
    this.#retries.cancel(release); // the answer may have come late, to a question that was to be repeated
    this.#deadlines.cancel(release.deadline);
    const { token } = release.pending;
    const latest = this.#releasesByToken.get(token);
    if (latest !== release) {
      for (let later = latest; later; later = later.previous) {
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

  /** What nobody waits for is answered, or was tried for its budget. */
  async idle(): Promise<void> {
    await Promise.all(this.#cleanUps);
  }

  close(): void {
    this.#isClosed = true;
    this.inUse.close();
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

  /** The node answers again: what failed goes out again. */
  recovered(node: RedisServer): void {
    for (const release of Array.from(this.#retries.items())) {
      if (release.failures > 0 && this.#serverFor(release.keys) === node) {
        this.#retries.cancel(release);
        this.send(release);
      }
    }
  }

  /** No answer came: tried again until the server has forgotten by itself. */
  retry(release: ReleaseCall, error: unknown): void {
    const now = this.#clock.now();
    const isRetried = isTransient(error) && now < release.until && !this.#isClosed;
    if (isRetried) {
      this.#retries.schedule(release, now + backoffMs(this.#random, release.failures, maxBackoffMs));
    } else {
      this.#abandon(release, engineError(error, release.pending.key, "unknown"));
    }
  }

  /**
   * The server has released. A request for the same token may still be carried out: then it is released once more, behind the latest
   * time of that.
   */
  answered(release: ReleaseCall, serverMicros: number): void {
    const now = this.#clock.now();
    const delayMs = (release.pending.latest ?? 0) - serverMicros / 1000;
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
