import type { Instant } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire } from "../../../driver.ts";
import { closedError } from "../../../errors.ts";
import { absent, type Indexed } from "../../../runtime/unordered-set.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import { expiredError, queueFullError } from "../server/errors.ts";
import { waitTimedOut } from "../server/timed-out.ts";
import type { GrantInUse } from "../server/grants-in-use.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import { unqueuedPollDelay, queuedPollDelay } from "../server/poll-delays.ts";
import {
  queueEntryExpiry,
  queueTtlMs,
  type HandedOverGrant,
  type PendingRelease,
} from "../server/pending-release.ts";
import { ServerCall } from "../server/server-call.ts";
import type { RequestHost } from "./request-host.ts";
import type { TimeEstimate } from "../server/server-clock.ts";
import { encodeMetadata } from "../protocol/metadata.ts";

/**
 * One request for a lock on one server: sent again until it is granted, cancelled, or its time is over.
 * Waiting has a place in the server's queue; a grant comes by reply, or by message and is then dated by a bracket. Whatever
 * message is lost, the poll asks again. All its questions have one token: they get the same grant.
 */
export class ServerAcquire extends ServerCall<AcquireResult> implements PendingAcquire, Indexed {
  index: number = absent;
  args: readonly string[] = [];
  token = "";
  readonly #host: RequestHost<ServerAcquire>;
  readonly #request: AcquireRequest;
  readonly #ignoresQueueLimit: boolean;
  #queueArgs = "";
  /** Of the server's clock, by which the token's place and its deadline in the queue are written. */
  #estimate: TimeEstimate | undefined;
  #requestedQueueing = false;
  #isQueued = false;
  #position: number | undefined;
  /** Of a grant, or of a place, of which a late reply or message may still come. */
  #grantInUse: GrantInUse | undefined;
  /** Goes on in its place, with a new token. */
  #successor: ServerAcquire | undefined;

  /** @param isPastBound the bound of the queue does not apply, because a grant is given up with this request */
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

  /** It was asked for: what its messages name is known. */
  get wasSent(): boolean {
    return this.token !== "";
  }

  /** Whether it wants a place in the queue. */
  get waits(): boolean {
    return this.#request.deadline !== null;
  }

  override cancel(reason: unknown): void {
    this.#successor?.cancel(reason);
    super.cancel(reason);
  }

  answered(reply: Reply): void {
    const answer = decodeReply(reply);
    this.history.answered(reply.sameConnection);
    if (!this.isOpen) {
      this.#handleLateReply(answer);
      return;
    }
    switch (answer[0] === "error" ? "error" : Number(answer[0])) {
      case "error":
        this.refused(String(answer[1]));
        return;
      case 0:
        this.#handleHeld(answer, reply);
        return;
      case 1:
        this.#grantedByReply(answer, reply);
        return;
      case 2:
        this.fail(queueFullError(this.key));
        return;
      case 4:
        this.#restart();
        return;
      default:
        this.trySend(); // dead waiters are left before us
    }
  }

  /** A message says that it is our turn. */
  granted(grant: PushedGrant): void {
    const ageMs = this.server.grantAges.ageOf(grant.runId, grant.serverMicros);
    if (ageMs === undefined) {
      this.trySend(); // the reply dates it
      return;
    }
    const { clock } = this.#host;
    const validity = validFrom({ now: clock.now(), wall: clock.wall() }, grant.ttlMs, ageMs);
    const isClaim = grant.ttlMs < this.#request.ttlMs;
    this.#handleGrant([1, grant.first, grant.last], validity, { isClaim, mayBeToldAgain: true });
  }

  /** The answer of a release of this client says that it is our turn. */
  grantedByRelease({ first, last, ttlMs }: HandedOverGrant, sent: Instant): void {
    const isClaim = ttlMs < this.#request.ttlMs;
    this.#handleGrant([1, first, last], validFrom(sent, ttlMs), { isClaim, mayBeToldAgain: true });
  }

  /** Another process has our tokens. */
  cloned(): void {
    if (this.wasSent) {
      this.#restart();
    }
  }

  /** Ends it without a word to the server: the driver is closed. */
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
    if (this.token === "") {
      this.token = this.#host.tokenFor(this.#request, this.server);
      this.#estimate = this.server.serverClock.estimate();
      this.#queueArgs = this.#createQueueArgs();
    }
    const { token } = this;
    const ttl = String(ttlMs);
    const count = String(fencingCount);
    const encodedInfo = encodeMetadata(info);
    const latest = server.latestExecution();
    this.history.sent(Number(latest));
    this.#requestedQueueing =
      this.waits && (this.#ignoresQueueLimit || server.notificationStatus === "verified");
    this.args = ["acquire", token, this.#queueArgs, ttl, count, this.#queueArgument(), encodedInfo, latest];
    server.perform(this);
  }

  /** Whether a place in the queue is wanted, as the script takes it. */
  #queueArgument(): string {
    if (!this.#requestedQueueing) {
      return "0";
    }
    const { isFresh } = this.server.grantAges;
    return this.#ignoresQueueLimit ? (isFresh ? "4" : "3") : isFresh ? "2" : "1";
  }

  /** What a queue member says after the token: written once, as a member is immutable. */
  #createQueueArgs(): string {
    const { claimMs, clock } = this.#host;
    const { server } = this;
    const { ttlMs, fencingCount } = this.#request;
    const remainingMs = this.deadline - clock.now();
    // The server compares the deadline with its own clock, and must not pass over a waiter whose own clock is slower.
    const deadline =
      remainingMs === Infinity
        ? 0
        : Math.ceil(
            server.serverClock.micros() / 1000 + remainingMs + server.serverClock.errorAfterMs(remainingMs),
          );
    return `${Math.min(ttlMs, claimMs)} ${fencingCount} ${deadline} ${server.channelKind} ${ttlMs}`;
  }

  #grantedByReply(answer: unknown[], reply: Reply): void {
    // Not steady: the client may have sent the request again, and the first sending may have queued us.
    const mayBeGrantedAgain = !reply.sameConnection || this.history.count > 1 || this.#ignoresQueueLimit;
    this.#handleGrant(answer, validFrom(reply.sent, this.#request.ttlMs), {
      isClaim: false,
      mayBeToldAgain: mayBeGrantedAgain,
    });
  }

  #handleHeld(answer: unknown[], reply: Reply): void {
    const [, remainingMs, position, , runId] = answer;
    if (reply.sameConnection && runId !== "") {
      this.server.grantAges.observe(String(runId), reply.serverMicros, reply.sent);
    }
    if (!this.waits) {
      this.#finish();
      this.resolve({ outcome: "held" });
      return;
    }
    this.server.listen();
    if (this.#estimate && this.server.serverClock.contradicts(this.#estimate)) {
      this.#restart();
      return;
    }
    this.#isQueued = Number(position) >= 0;
    this.#position = this.#isQueued ? Number(position) : undefined;
    if (this.#isQueued) {
      this.#host.queued(this);
    }
    if (this.history.count === 1) {
      publish("queued", () => ({ key: this.key, position: this.#position }));
    }
    this.retryIn(this.#pollDelay(Number(remainingMs)));
  }

  #pollDelay(remainingMs: number): number {
    const { random } = this.#host;
    if (!this.#isQueued) {
      if (this.server.notificationStatus === "verified" && !this.#requestedQueueing) {
        return 0; // proved since we asked: now we may queue
      }
      return unqueuedPollDelay(random, this.history.count, remainingMs);
    }
    return queuedPollDelay(random, this.#position ?? 0, remainingMs, this.#request.ttlMs);
  }

  protected expired(): void {
    this.abandon();
    void waitTimedOut(this.#host, this.#request, this.#position).then(this.resolve);
  }

  /** A grant that came so late that nothing is left of it is not handed out; asked again, it is a whole one. */
  #handleGrant(
    answer: readonly unknown[],
    validity: Validity,
    { isClaim, mayBeToldAgain: mayBeGrantedAgain }: { isClaim: boolean; mayBeToldAgain: boolean },
  ): void {
    if (remainingValidityMs(validity, this.#host.clock) <= 0) {
      this.retryAfter(expiredError());
      return;
    }
    const { token } = this;
    const [, first, last] = answer;
    this.#finish(mayBeGrantedAgain ? token : undefined);
    this.resolve({
      outcome: "granted",
      grant: {
        key: this.key,
        token,
        fencingToken: BigInt(first as number),
        fencingCount: Number(last) - Number(first) + 1,
        validity,
        isClaim,
      },
    });
  }

  /**
   * The server executed it too late, or its clock shows another time than the one by which the place and its deadline were written: another
   * request goes on, with a new token and place.
   */
  #restart(): void {
    this.abandon();
    const request = { ...this.#request, ticket: undefined };
    const [ignoresQueueLimit, deadline] = [this.#ignoresQueueLimit, this.deadline];
    this.#successor = new ServerAcquire(this.#host, request, this.keys, { ignoresQueueLimit, deadline });
    this.#successor.result.then(this.resolve, this.reject);
    this.#host.begin(this.#successor);
  }

  /** Gives up: what the server may have of us is taken back. */
  protected abandon(): void {
    this.#finish();
    if (this.token !== "") {
      this.#host.releaseQueue.cleanUp(this.#pendingRelease());
    }
  }

  #pendingRelease(): PendingRelease {
    const { key, keys, token } = this;
    const { latest } = this.history;
    const now = this.#host.clock.now();
    // The deadline was written late by the error of the estimate, and the server's clock may be behind by as much.
    const lateMs = 2 * this.server.serverClock.errorAfterMs(Math.max(0, this.deadline - now));
    const entryEnd = this.deadline + Math.min(lateMs, queueTtlMs);
    const until = Math.max(now + this.#request.ttlMs, queueEntryExpiry(now, entryEnd));
    return { key, keys, token, queueArgs: this.#queueArgs, until, latest };
  }

  /** Order holds only within one connection and one script: a late answer may have queued or granted us once more. */
  #handleLateReply(answer: readonly unknown[]): void {
    const status = Number(answer[0]);
    const hasResidue = status === 1 || (status === 0 && Number(answer[2]) >= 0);
    if (hasResidue) {
      this.#host.releaseQueue.cleanUpUnused(this.#pendingRelease(), this.#grantInUse);
    }
  }

  /** @param usedToken of a grant that is in use from now on */
  #finish(usedToken?: string): void {
    this.isOpen = false;
    if (usedToken !== undefined) {
      this.#grantInUse = this.#host.releaseQueue.inUse.add(usedToken, this.#request.ttlMs, this.history);
    }
    this.#host.settled(this);
  }
}

/** Of a usual grant the answer is its number. */
function decodeReply({ value }: Reply): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [1, value, value];
}
