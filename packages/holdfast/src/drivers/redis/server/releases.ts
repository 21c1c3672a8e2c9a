import { type Operation, type Reply, withProposedFence } from "../protocol/operation.ts";
import { clientIdOf } from "../protocol/token.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Clock, Instant } from "../../../runtime/clock.ts";
import { type Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineError, isTransient, outcomeOf, serverRefusal, timeoutError, withServer } from "./errors.ts";
import { publish } from "../../../diagnostics.ts";
import { closedError, type LockError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import { lateTimerMs } from "./poll-delays.ts";
import type { RedisServer } from "./server.ts";

/** A clone may repeat these operations without harm, because each attempt counts once. */
const latchOperations = new Set(["countDown", "waitLatch", "leaveLatchQueue"]);

/** Whether a token of the operation is one of these client IDs. In an operation of a quorum the token follows the proposed fence. */
export function hasTokenOf(
  clientIds: ReadonlySet<string>,
  { args: [name = "", ...rest] }: Operation,
): boolean {
  const isOf = (arg: string): boolean => clientIds.has(clientIdOf(arg) ?? "");
  return !latchOperations.has(name) && rest.slice(0, 2).some(isOf);
}

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
  readonly entryTail: string;
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
export function releaseOperation(
  { token, entryTail, proposedFence, isOwn }: PendingRelease,
  name: ReleaseOperation,
): readonly string[] {
  if (proposedFence !== undefined) {
    return withProposedFence([name, token, entryTail], proposedFence);
  }
  return name === "release" ? [name, token, entryTail, isOwn === true ? "1" : "0"] : [name, token, entryTail];
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

/** The release queue, as its calls need it. */
interface ReleaseCallHost {
  readonly onHandedOver: (grant: HandedOverGrant, sent: Instant) => void;
  readonly onVotedFor: (token: string) => void;
  send(release: ReleaseCall): void;
  retry(release: ReleaseCall, error: unknown): void;
  answered(release: ReleaseCall, serverMicros: number): void;
  grantFound(release: ReleaseCall): void;
}

class ReleaseCall implements Operation, Scheduled {
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
    // If the first release worked but its reply was lost, the repeat finds nothing. It is still reported as released.
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
class ReleaseDeadline implements Scheduled {
  dueAt = 0;
  slot = -1;
  hasGracePeriod = false;
  readonly release: ReleaseCall;

  constructor(release: ReleaseCall) {
    this.release = release;
  }
}

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
  #openCalls = 0;

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
    args: readonly string[] = releaseOperation(pending, name),
  ): void {
    this.#start(new ReleaseCall(this, name, args, pending, listener));
  }

  #start(release: ReleaseCall): void {
    const { token, keys, until, earlier } = release.pending;
    const lateMs = this.#serverFor(keys).msUntil(earlier?.latest ?? 0);
    release.until = until + lateMs; // a request that is executed late has a grant that ends late
    release.previous = this.#releasesByToken.set(token, release);
    this.#openCalls += 1;
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
      const args = releaseOperation(pending, "release");
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
  grantFound(call: ReleaseCall): void {
    call.wasFound = true;
    if (this.#hasSeveralOfOneToken) {
      const { token } = call.pending;
      for (let other = this.#releasesByToken.get(token); other; other = other.previous) {
        other.wasFound = true;
      }
    }
  }

  /** The call is not sent again: answered, expired, cancelled, refused for good, or the queue is closed. */
  ended(release: ReleaseCall): void {
    this.#retries.cancel(release); // a late reply may have arrived before the repeat
    this.#deadlines.cancel(release.deadline);
    if (!release.isEnded) {
      release.isEnded = true;
      this.#remove(release);
      this.#openCalls -= 1;
    }
  }

  get #hasSeveralOfOneToken(): boolean {
    return this.#openCalls > this.#releasesByToken.size;
  }

  #remove(release: ReleaseCall): void {
    const { token } = release.pending;
    const newest = this.#hasSeveralOfOneToken ? this.#releasesByToken.get(token) : release;
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
