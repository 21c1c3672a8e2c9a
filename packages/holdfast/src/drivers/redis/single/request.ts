import type { Moment } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import type { Acquired, AcquireRequest, Pending } from "../../../driver.ts";
import { closedError } from "../../../errors.ts";
import { nowhere, type Pooled } from "../../../runtime/unordered-set.ts";
import { leftOf, validFrom, type Validity } from "../../../validity.ts";
import { expiredError, queueFullError } from "../server/errors.ts";
import { farewell } from "../server/timed-out.ts";
import type { Use } from "../server/grants-in-use.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import { impatientDelay, pollDelay } from "../server/poll-delays.ts";
import { placeUntil, type HandedOver, type Leftover } from "../server/release-queue.ts";
import { RepeatedCall } from "../server/server-call.ts";
import type { RequestHost } from "./request-host.ts";
import type { TimeEstimate } from "../server/server-clock.ts";
import { encodeWords } from "../protocol/metadata.ts";

/**
 * One request for a lock on one server: sent again until it is granted, cancelled, or its time is over.
 * Waiting has a place in the server's queue; a grant comes by reply, or by message and is then dated by a bracket. Whatever
 * message is lost, the poll asks again. All its questions have one token: they get the same grant.
 */
export class Request extends RepeatedCall<Acquired> implements Pending, Pooled {
  place: number = nowhere;
  args: readonly string[] = [];
  token = "";
  readonly #host: RequestHost;
  readonly #request: AcquireRequest;
  readonly #isPastBound: boolean;
  #terms = "";
  /** Of the server's clock, by which the token's place and its deadline in the queue are written. */
  #estimate: TimeEstimate | undefined;
  #askedForPlace = false;
  #isQueued = false;
  #position: number | undefined;
  /** Of a grant, or of a place, of which a late reply or message may still come. */
  #use: Use | undefined;
  /** Goes on in its place, with a new token. */
  #successor: Request | undefined;

  /** @param isPastBound the bound of the queue does not apply, because a grant is given up with this request */
  constructor(
    host: RequestHost,
    request: AcquireRequest,
    keys: LockKeys,
    { isPastBound = false, deadline }: { isPastBound?: boolean; deadline?: number } = {},
  ) {
    super(host, { key: request.key, keys, node: host.nodeOf(keys), deadline: deadline ?? request.deadline });
    this.#host = host;
    this.#request = request;
    this.#isPastBound = isPastBound;
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
    const answer = answerOf(reply);
    this.attempts.answered(reply.isSteady);
    if (!this.isOpen) {
      this.#answeredTooLate(answer);
      return;
    }
    switch (answer[0] === "error" ? "error" : Number(answer[0])) {
      case "error":
        this.refused(String(answer[1]));
        return;
      case 0:
        this.#held(answer, reply);
        return;
      case 1:
        this.#grantedByReply(answer, reply);
        return;
      case 2:
        this.fail(queueFullError(this.key));
        return;
      case 4:
        this.#beginAnew();
        return;
      default:
        this.attempt(); // dead waiters are left before us
    }
  }

  /** A message says that it is our turn. */
  granted(grant: PushedGrant): void {
    const ageMs = this.node.brackets.ageOf(grant.runId, grant.serverMicros);
    if (ageMs === undefined) {
      this.attempt(); // the reply dates it
      return;
    }
    const { clock } = this.#host;
    const validity = validFrom({ now: clock.now(), wall: clock.wall() }, grant.ttlMs, ageMs);
    const isClaim = grant.ttlMs < this.#request.ttlMs;
    this.#take([1, grant.first, grant.last], validity, { isClaim, mayBeToldAgain: true });
  }

  /** The answer of a release of this client says that it is our turn. */
  grantedByRelease({ first, last, ttlMs }: HandedOver, sent: Moment): void {
    const isClaim = ttlMs < this.#request.ttlMs;
    this.#take([1, first, last], validFrom(sent, ttlMs), { isClaim, mayBeToldAgain: true });
  }

  /** Another process has our tokens. */
  cloned(): void {
    if (this.wasSent) {
      this.#beginAnew();
    }
  }

  /** Ends it without a word to the server: the driver is closed. */
  close(): void {
    this.cancel(closedError(this.key));
  }

  protected unready(): Promise<unknown> | undefined {
    const { node } = this;
    return (this.wasSent ? node.isKnown : node.time.isCertain) ? undefined : node.knowTime();
  }

  protected send(): void {
    const { node } = this;
    const { ttlMs, want, words } = this.#request;
    if (this.token === "") {
      this.token = this.#host.tokenFor(this.#request, this.node);
      this.#estimate = this.node.time.estimate();
      this.#terms = this.#writeTerms();
    }
    const { token } = this;
    const ttl = String(ttlMs);
    const numbers = String(want);
    const told = encodeWords(words);
    const latest = node.latestExecution();
    this.attempts.sent(Number(latest));
    this.#askedForPlace = this.waits && (this.#isPastBound || node.hearing === "proved");
    this.args = ["acquire", token, this.#terms, ttl, numbers, this.#place(), told, latest];
    node.perform(this);
  }

  /** Whether a place in the queue is wanted, as the script takes it. */
  #place(): string {
    if (!this.#askedForPlace) {
      return "0";
    }
    const { isFresh } = this.node.brackets;
    return this.#isPastBound ? (isFresh ? "4" : "3") : isFresh ? "2" : "1";
  }

  /** What a queue member says after the token: written once, as a member is immutable. */
  #writeTerms(): string {
    const { claimMs, clock } = this.#host;
    const { node } = this;
    const { ttlMs, want } = this.#request;
    const leftMs = this.deadline - clock.now();
    const deadline = leftMs === Infinity ? 0 : Math.ceil(node.time.micros() / 1000 + leftMs);
    return `${Math.min(ttlMs, claimMs)} ${want} ${deadline} ${node.channelKind} ${ttlMs}`;
  }

  #grantedByReply(answer: unknown[], reply: Reply): void {
    // Not steady: the client may have sent the request again, and the first sending may have queued us.
    const mayBeToldAgain = !reply.isSteady || this.attempts.count > 1 || this.#isPastBound;
    this.#take(answer, validFrom(reply.sent, this.#request.ttlMs), { isClaim: false, mayBeToldAgain });
  }

  #held(answer: unknown[], reply: Reply): void {
    const [, remainingMs, position, , runId] = answer;
    if (reply.isSteady && runId !== "") {
      this.node.brackets.observe(String(runId), reply.serverMicros, reply.sent);
    }
    if (!this.waits) {
      this.#finish();
      this.resolve({ outcome: "held" });
      return;
    }
    this.node.listen();
    if (this.#estimate && this.node.time.contradicts(this.#estimate)) {
      this.#beginAnew();
      return;
    }
    this.#isQueued = Number(position) >= 0;
    this.#position = this.#isQueued ? Number(position) : undefined;
    if (this.#isQueued) {
      this.#host.queued(this);
    }
    if (this.attempts.count === 1) {
      tell("queued", () => ({ key: this.key, position: this.#position }));
    }
    this.askAgainIn(this.#pollDelay(Number(remainingMs)));
  }

  #pollDelay(remainingMs: number): number {
    const { random } = this.#host;
    if (!this.#isQueued) {
      if (this.node.hearing === "proved" && !this.#askedForPlace) {
        return 0; // proved since we asked: now we may queue
      }
      return impatientDelay(random, this.attempts.count, remainingMs);
    }
    return pollDelay(random, this.#position ?? 0, remainingMs, this.#request.ttlMs);
  }

  protected expired(): void {
    this.abandon();
    void farewell(this.#host, this.#request, this.#position).then(this.resolve);
  }

  /** A grant that came so late that nothing is left of it is not handed out; asked again, it is a whole one. */
  #take(
    answer: readonly unknown[],
    validity: Validity,
    { isClaim, mayBeToldAgain }: { isClaim: boolean; mayBeToldAgain: boolean },
  ): void {
    if (leftOf(validity, this.#host.clock) <= 0) {
      this.failedToReach(expiredError());
      return;
    }
    const { token } = this;
    const [, first, last] = answer;
    this.#finish(mayBeToldAgain ? token : undefined);
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
  #beginAnew(): void {
    this.abandon();
    const request = { ...this.#request, ticket: undefined };
    const [isPastBound, deadline] = [this.#isPastBound, this.deadline];
    this.#successor = new Request(this.#host, request, this.keys, { isPastBound, deadline });
    this.#successor.result.then(this.resolve, this.reject);
    this.#host.begin(this.#successor);
  }

  /** Gives up: what the server may have of us is taken back. */
  protected abandon(): void {
    this.#finish();
    if (this.token !== "") {
      this.#host.releaser.takeBack(this.#leftover());
    }
  }

  #leftover(): Leftover {
    const { key, keys, token } = this;
    const { latest } = this.attempts;
    const now = this.#host.clock.now();
    const until = Math.max(now + this.#request.ttlMs, placeUntil(now, this.deadline));
    return { key, keys, token, terms: this.#terms, until, latest };
  }

  /** Order holds only within one connection and one script: a late answer may have queued or granted us once more. */
  #answeredTooLate(answer: readonly unknown[]): void {
    const status = Number(answer[0]);
    const isThere = status === 1 || (status === 0 && Number(answer[2]) >= 0);
    if (isThere) {
      this.#host.releaser.toldLate(this.#leftover(), this.#use);
    }
  }

  /** @param usedToken of a grant that is in use from now on */
  #finish(usedToken?: string): void {
    this.isOpen = false;
    if (usedToken !== undefined) {
      this.#use = this.#host.releaser.inUse.add(usedToken, this.#request.ttlMs, this.attempts);
    }
    this.#host.settled(this);
  }
}

/** Of a usual grant the answer is its number. */
function answerOf({ value }: Reply): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [1, value, value];
}
