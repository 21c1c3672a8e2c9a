import { type Clock, type Instant, instantNow } from "../../../runtime/clock.ts";
import type { AcquireRequest, AcquireResult, Grant, PendingAcquire } from "../../../driver.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Holder } from "../../../lock-state.ts";
import type { TimerQueue } from "../../../runtime/timer-queue.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "../server/server.ts";
import {
  type HandedOverGrant,
  type PendingRelease,
  queueEntryExpiry,
  queueTtlMs,
  type ReleaseQueue,
} from "../server/releases.ts";
import { ServerCall, type Wakeable } from "../server/server-call.ts";
import type { GrantAgeEstimator, TimeEstimate } from "../server/server-clock.ts";
import { closedError } from "../../../errors.ts";
import { absent, type Indexed } from "../../../runtime/unordered-set.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import { expiredError, queueFullError, waitTimedOut } from "../server/errors.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import { acquireStatus, decodeAcquireReply, type Reply } from "../protocol/operation.ts";
import { foreignPollDelay, queuedPollDelay, unqueuedPollDelay } from "../server/poll-delays.ts";
import { encodeMetadata } from "../protocol/metadata.ts";

/** A driver, as its requests need it. */
export interface RequestHost<Request> {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly timers: TimerQueue<Wakeable>;
  readonly releaseQueue: ReleaseQueue;
  /** The server that has these keys. */
  serverFor(keys: LockKeys): RedisServer;
  tokenFor(request: AcquireRequest, server: RedisServer): string;
  begin(request: Request): void;
  /** The request has an entry in the server's queue. */
  queued(request: Request): void;
  settled(request: Request): void;
  /** The request has its grant, and the server may still execute an earlier copy of it. The release must know the request. */
  grantedEarly(request: Request): void;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * A queue entry after its token: validity of the first grant, fencing count, deadline by the server's clock, channel, TTL. A request
 * writes it once, because the entry in the server's queue cannot be changed.
 */
function queueEntryOf(
  { ttlMs, fencingCount }: AcquireRequest,
  server: RedisServer,
  claimMs: number,
  remainingMs: number,
  at: Instant,
): string {
  // The server compares the deadline with its own clock, and must not skip a waiter whose clock is slower. So the error is added.
  const deadline =
    remainingMs === Infinity
      ? 0
      : Math.ceil(
          server.serverClock.micros(at.now) / 1000 +
            remainingMs +
            server.serverClock.errorAfterMs(remainingMs, at),
        );
  return `${Math.min(ttlMs, claimMs)} ${fencingCount} ${deadline} ${server.channelKind} ${ttlMs}`;
}

/** The latest time at which a grant or queue entry of the request may still exist, on the scale of `clock.now()`. */
function residueExpiry(server: RedisServer, now: number, deadline: number, ttlMs: number): number {
  // The entry's deadline is too late by the error of the estimate, and the server's clock may lag by as much again.
  const lateMs = 2 * server.serverClock.errorAfterMs(Math.max(0, deadline - now));
  const entryEnd = deadline + Math.min(lateMs, queueTtlMs);
  return Math.max(now + ttlMs, queueEntryExpiry(now, entryEnd));
}

/** Whether a queue entry is requested, as the script expects it. With a fresh sample of the server's time the reply needs no run ID. */
function waitMode(isQueueing: boolean, ignoresQueueLimit: boolean, grantAges: GrantAgeEstimator): string {
  if (!isQueueing) {
    return "0";
  }
  const { isFresh } = grantAges;
  return ignoresQueueLimit ? (isFresh ? "4" : "3") : isFresh ? "2" : "1";
}

/**
 * One request for a lock on one server. The request is repeated until a grant, its cancellation, or its deadline. Every repeat has the
 * same token and gets the same grant.
 *
 * A waiting request has an entry in the server's queue. Its grant arrives in a reply or by notification. A poll repeats the request
 * after a delay, because a notification may be lost.
 */
export class ServerAcquire extends ServerCall<AcquireResult> implements PendingAcquire, Indexed {
  index: number = absent;
  args: readonly string[] = [];
  token = "";
  readonly #host: RequestHost<ServerAcquire>;
  readonly #request: AcquireRequest;
  readonly #ignoresQueueLimit: boolean;
  #entryTail = "";
  /** The estimate of the server's clock from which the ticket and the deadline of the queue entry were computed. */
  #estimate: TimeEstimate | undefined;
  #requestedQueueing = false;
  /** The position in the queue; undefined: the request has no queue entry. */
  #position: number | undefined;
  /**
   * The last fencing number of the grant of this request, which is in use until its release: here, or in a process that adopted the
   * lease. Undefined: there is no grant, or its release has begun.
   */
  #lastNumberInUse: number | undefined;
  /** The request that continues this one with a new token. */
  #successor: ServerAcquire | undefined;

  /** @param ignoresQueueLimit the limit of the queue does not apply, because the caller releases a grant with this request */
  constructor(
    host: RequestHost<ServerAcquire>,
    request: AcquireRequest,
    keys: LockKeys,
    { ignoresQueueLimit = false, deadline }: { ignoresQueueLimit?: boolean; deadline?: number } = {},
  ) {
    super(host, {
      key: request.key,
      keys,
      server: host.serverFor(keys),
      deadline: deadline ?? request.deadline,
    });
    this.#host = host;
    this.#request = request;
    this.#ignoresQueueLimit = ignoresQueueLimit;
  }

  /** Whether the request was sent at least once, so that its token is known. */
  get wasSent(): boolean {
    return this.token !== "";
  }

  /** Whether the request waits for the lock, with a queue entry if possible. */
  get waits(): boolean {
    return this.#request.deadline !== null;
  }

  override cancel(reason: unknown): void {
    this.#successor?.cancel(reason);
    super.cancel(reason);
  }

  answered(reply: Reply): void {
    const answer = decodeAcquireReply(reply);
    this.history.answered(reply.sameConnection);
    if (!this.isOpen) {
      this.#handleLateReply(answer);
      return;
    }
    switch (answer[0] === "error" ? "error" : Number(answer[0])) {
      case "error":
        this.refused(String(answer[1]));
        return;
      case acquireStatus.held:
        this.#handleHeld(answer, reply);
        return;
      case acquireStatus.granted:
        this.#handleGrant(answer, validFrom(reply.sent, this.#request.ttlMs), false);
        return;
      case acquireStatus.queueFull:
        this.fail(queueFullError(this.key));
        return;
      case acquireStatus.executedTooLate:
        this.#restart();
        return;
      case acquireStatus.deadWaitersRemain:
      default:
        this.sendIfOpen();
    }
  }

  /** A notification reports the grant. */
  granted(grant: PushedGrant): void {
    const at = instantNow(this.#host.clock);
    const ageMs = this.server.grantAges.ageOf(grant.runId, grant.serverMicros, at);
    if (ageMs === undefined) {
      this.sendIfOpen(); // the reply has the time of the grant
      return;
    }
    const validity = validFrom(at, grant.ttlMs, ageMs);
    const isClaim = this.#isClaim(grant.ttlMs);
    this.#handleGrant([acquireStatus.granted, grant.first, grant.last], validity, isClaim, "message");
  }

  /** The reply to a release of this client reports the grant. */
  grantedByRelease({ first, last, ttlMs }: HandedOverGrant, sent: Instant): void {
    this.#handleGrant([acquireStatus.granted, first, last], validFrom(sent, ttlMs), this.#isClaim(ttlMs));
  }

  /** Whether the grant of the queue needs an extension at once: for its TTL, or because a queue entry has no metadata. */
  #isClaim(ttlMs: number): boolean {
    return ttlMs < this.#request.ttlMs || this.#request.info !== undefined;
  }

  /** A clone of this process has the same tokens. */
  cloned(): void {
    if (this.wasSent) {
      this.#restart();
    }
  }

  /** The release of the grant has begun. @returns what the requests that may still be executed leave on the server */
  releasing(): PendingRelease {
    this.#lastNumberInUse = undefined;
    return this.#pendingRelease();
  }

  /** How long the server may still execute one of the requests, ms, by the estimate of its clock. */
  get pendingMs(): number {
    return this.server.msUntil(this.history.latest);
  }

  /** Cancels the request, because the driver is closed. */
  close(): void {
    this.cancel(closedError(this.key));
  }

  protected prepare(): Promise<unknown> | undefined {
    const { server } = this;
    return (this.wasSent ? server.isTimeKnown : server.serverClock.isCertain)
      ? undefined
      : server.refreshTime();
  }

  protected send(): void {
    const { server } = this;
    const { ttlMs, fencingCount, info } = this.#request;
    const at = instantNow(this.#host.clock);
    if (this.token === "") {
      this.token = this.#host.tokenFor(this.#request, this.server);
      this.#estimate = this.server.serverClock.estimate(at);
      this.#entryTail = queueEntryOf(this.#request, server, this.#host.claimMs, this.deadline - at.now, at);
    }
    const { token } = this;
    const [ttl, count] = [String(ttlMs), String(fencingCount)];
    const encodedInfo = encodeMetadata(info);
    const latest = server.latestExecution(at);
    this.history.sent(Number(latest));
    this.#requestedQueueing =
      this.waits && (this.#ignoresQueueLimit || server.notificationStatus === "verified");
    const queueing = waitMode(this.#requestedQueueing, this.#ignoresQueueLimit, server.grantAges);
    this.args = ["acquire", token, this.#entryTail, ttl, count, queueing, encodedInfo, latest];
    server.perform(this);
  }

  #handleHeld(answer: unknown[], reply: Reply): void {
    const [, remainingMs, position, holder, runId] = answer;
    if (reply.sameConnection && runId !== "") {
      this.server.grantAges.observe(String(runId), reply.serverMicros, reply.sent);
    }
    if (!this.waits) {
      this.#finish();
      if (this.history.latest > 0) {
        this.#cleanUp(); // an earlier repeat may still be executed, and then be granted the lock
      }
      this.resolve({ outcome: "held" });
      return;
    }
    this.server.listen();
    if (this.#estimate && this.server.serverClock.contradicts(this.#estimate)) {
      this.#restart();
      return;
    }
    this.#position = Number(position) >= 0 ? Number(position) : undefined;
    if (this.#position !== undefined) {
      this.#host.queued(this);
    }
    this.#request.waiter?.onQueued?.(this.#position);
    this.retryIn(this.#pollDelay(Number(remainingMs), String(holder)));
  }

  #pollDelay(remainingMs: number, holder: string): number {
    const [position, requests, random] = [this.#position, this.history.count, this.#host.random];
    if (position !== undefined) {
      const untilFreeMs = queuedPollDelay(random, position, remainingMs, this.#request.ttlMs);
      return Math.min(untilFreeMs, foreignPollDelay(random, position, holder, requests));
    }
    return this.server.notificationStatus === "verified" && !this.#requestedQueueing
      ? 0 // the subscription was verified after the sending, so a repeat can request a queue entry
      : unqueuedPollDelay(random, requests, remainingMs);
  }

  protected expired(): void {
    this.abandon();
    void waitTimedOut(this.#host, this.#request, this.#position).then(this.resolve);
  }

  /** An expired grant is not used. The request is repeated, because the repeat gets a grant with its full TTL. */
  #handleGrant(answer: readonly unknown[], validity: Validity, isClaim: boolean, via?: Grant["via"]): void {
    if (remainingValidityMs(validity, this.#host.clock) <= 0) {
      this.retryAfter(expiredError());
      return;
    }
    const { key, token } = this;
    const [, first, last] = answer;
    const fencingToken = BigInt(first as number); // throws for a malformed reply, while the request is still open
    const grant = {
      key,
      token,
      fencingToken,
      fencingCount: Number(last) - Number(first) + 1,
      validity,
      isClaim,
      via,
    };
    this.#finish();
    this.#lastNumberInUse = Number(last);
    if (this.history.latest > 0) {
      this.#host.grantedEarly(this);
    }
    this.resolve({ outcome: "granted", grant });
  }

  /**
   * Continues with a new request, with another token and ticket. The server executed this request too late, or its ticket and
   * deadline were computed from a wrong estimate of the server's clock.
   */
  #restart(): void {
    this.abandon();
    const request = { ...this.#request, ticket: undefined };
    const [ignoresQueueLimit, deadline] = [this.#ignoresQueueLimit, this.deadline];
    this.#successor = new ServerAcquire(this.#host, request, this.keys, { ignoresQueueLimit, deadline });
    this.#successor.result.then(this.resolve, this.reject);
    this.#host.begin(this.#successor);
  }

  /** Ends the request, and cleans up its grant and queue entry on the server. */
  protected abandon(): void {
    this.#finish();
    if (this.history.wasAnswered || this.history.latest > 0) {
      this.#cleanUp();
    }
  }

  #cleanUp(): void {
    this.#host.releaseQueue.cleanUp(this.#pendingRelease());
  }

  #pendingRelease(): PendingRelease {
    const { key, keys, token, server, deadline } = this;
    const until = residueExpiry(server, this.#host.clock.now(), deadline, this.#request.ttlMs);
    return { key, keys, token, entryTail: this.#entryTail, until, earlier: this.history };
  }

  /**
   * Requests are ordered only within one connection and one script call. So a late repeat may have been granted or queued again.
   *
   * While the grant of this request is in use, its release cleans up, and nothing else does. No time ends the use, because the process
   * that adopted the lease, or the watchdog thread, extends the grant without this driver. Only a greater number proves the end: the
   * server had granted the lock anew, and no lease has that number.
   */
  #handleLateReply(answer: readonly unknown[]): void {
    const status = Number(answer[0]);
    const inUse = this.#lastNumberInUse;
    const isQueued = status === acquireStatus.held && Number(answer[2]) >= 0;
    const isUnusedEntry = isQueued && inUse === undefined;
    const isUnusedGrant =
      status === acquireStatus.granted && (inUse === undefined || Number(answer[1]) > inUse);
    if (isUnusedEntry || isUnusedGrant) {
      this.#cleanUp();
    }
  }

  #finish(): void {
    this.isOpen = false;
    this.#host.settled(this);
  }
}
