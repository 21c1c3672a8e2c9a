import type { IncomingMessage } from "node:http";

import { instantNow, type Clock, type Instant } from "../../runtime/clock.ts";
import type { AcquireResult, AcquireRequest, Capabilities, PendingAcquire } from "../../driver.ts";
import { EngineError, isLockError, WaitTimeoutError, type LockError } from "../../errors.ts";
import { backoffMs, type Random } from "../../runtime/random.ts";
import { remainingValidityMs, type Validity } from "../../validity.ts";
import { pause, withTimeout } from "../../runtime/timeout.ts";
import { acquireSpec, maxWaitMs, readReply, validityOf, type AcquireReply } from "./acquire-wire.ts";
import type { ArrivalOrder } from "../../runtime/arrival-order.ts";
import type { Client, HttpRequestSpec, HttpResponse } from "./client.ts";
import { errorOf, leaseOf, problemOf } from "./problems.ts";
import { secretOf, type WireLease, type WireProblem } from "./wire.ts";

/** How long the client waits for the reply to an abandoned request. The reply may be a grant, which the client then releases. */
const replyGraceMs = 60_000;
/** How long after the deadline the service may still report the holder. */
const timeoutGraceMs = 1_000;
/** The service sends a comment every 15 s, so a silence of this length means a broken connection. */
const maxSilenceMs = 40_000;

/** The parts of the driver that an acquire uses. */
export interface AcquireHost {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly arrivalOrder: ArrivalOrder;
  readonly requestTimeoutMs: number;
  readonly owner: string;
  release(key: string, token: string, until: number): Promise<boolean>;
}

/** One acquire by the lock service. A waiter keeps one connection open, and leaves the queue by closing the connection. */
export class HttpAcquire implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #host: AcquireHost;
  readonly #request: AcquireRequest;
  /** Aborted to close the connection of the waiter. */
  readonly #waitStream = new AbortController();
  #isQueued = false;
  #isSettled = false;
  #reject!: (reason: unknown) => void;

  constructor(host: AcquireHost, request: AcquireRequest) {
    this.#host = host;
    this.#request = request;
    this.result = new Promise((resolve, reject) => {
      this.#reject = reject;
      const { deadline } = request;
      (deadline === null ? this.#tryOnce() : this.#wait(deadline)).then(
        (acquired) => {
          if (!this.#isSettled) {
            this.#isSettled = true;
            resolve(acquired);
          } else {
            this.#releaseGrant(acquired);
          }
        },
        (error: unknown) => {
          this.#isSettled = true;
          reject(error as Error);
        },
      );
    });
  }

  /** Until the service reports a queue entry, its reply may be a grant. Therefore the client still reads that reply. */
  cancel(reason: unknown): void {
    if (!this.#isSettled) {
      this.#isSettled = true;
      this.#reject(reason);
      if (this.#isQueued) {
        this.#waitStream.abort();
      }
    }
  }

  async #tryOnce(): Promise<AcquireResult> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const pending = client
      .request(this.#requestSpec(0), replyGraceMs)
      .then((response) => this.#handleReply(response));
    const reply = await withTimeout(clock, requestTimeoutMs, pending);
    if (reply === undefined) {
      pending.then((late) => this.#releaseGrant(late)).catch(() => undefined);
      throw client.noReplyError(requestTimeoutMs);
    }
    return reply;
  }

  #handleReply({ status, body, sent }: HttpResponse): AcquireResult {
    if (status === 200 || status === 201) {
      const granted = leaseOf(status, body);
      return this.#grant(granted, validityOf(granted, sent));
    }
    return this.#rejectWith(problemOf({ status, body }));
  }

  /** Releases a grant whose caller no longer waits. */
  #releaseGrant(acquired: AcquireResult): void {
    if (acquired.outcome === "granted") {
      const { key, token, validity } = acquired.grant;
      this.#host.release(key, token, validity.until).catch(() => false);
    }
  }

  /** Retries after every temporary failure of the service or its engine, until the deadline. */
  async #wait(deadline: number): Promise<AcquireResult> {
    const { clock, random } = this.#host;
    let failures = 0;
    let failure: LockError | undefined;
    while (!this.#isSettled) {
      const remainingMs = deadline - clock.now();
      if (remainingMs <= 0 && failure !== undefined) {
        throw failure;
      }
      try {
        const acquired = await this.#enqueue(deadline);
        if (acquired.outcome === "granted" || remainingMs <= maxWaitMs) {
          return acquired;
        }
      } catch (error) {
        if (!isLockError(error) || !error.retryable) {
          throw error;
        }
        failure = error;
        const pauseMs = backoffMs(random, failures, 1_000);
        failures += 1;
        await pause(clock, Math.min(pauseMs, Math.max(0, deadline - clock.now())));
      }
    }
    return { outcome: "held" }; // cancelled: `result` has already rejected
  }

  /** Waits in the service's queue once. */
  async #enqueue(deadline: number): Promise<AcquireResult> {
    const entered = await this.#awaitTurn(deadline);
    let reply: AcquireReply;
    try {
      reply = this.#isSettled ? { timedOut: true } : await this.#listen(deadline, entered);
    } catch (error) {
      throw this.#host.client.failure(error);
    } finally {
      entered();
    }
    if ("timedOut" in reply) {
      return { outcome: "held" };
    }
    return "granted" in reply ? this.#accept(reply.granted, reply.sent) : this.#rejectWith(reply.problem);
  }

  /**
   * Waits until the earlier waiters of this process have entered the service's queue.
   * Rejects after the request timeout, or at the deadline if that comes later.
   */
  async #awaitTurn(deadline: number): Promise<() => void> {
    const { clock, arrivalOrder, requestTimeoutMs } = this.#host;
    const limitMs = Math.max(requestTimeoutMs, deadline - clock.now());
    const entered = await arrivalOrder.enterWithin(clock, limitMs, this.#request.key);
    if (!entered) {
      throw new EngineError("The lock service has not answered the earlier requests for this key", { outcome: "none", retryable: true }); // prettier-ignore
    }
    return entered;
  }

  async #listen(deadline: number, entered: () => void): Promise<AcquireReply> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const end = deadline + timeoutGraceMs;
    const sent = instantNow(clock);
    const timedOut = new AbortController();
    const spec = {
      ...this.#requestSpec(Math.max(0, deadline - sent.now)),
      accept: "text/event-stream",
    } as const;
    const sending = client.send(spec, AbortSignal.any([timedOut.signal, this.#waitStream.signal]));
    const response = await withTimeout(clock, requestTimeoutMs, sending);
    if (response === undefined) {
      this.#readLateReply(sending, timedOut, sent);
      throw client.noReplyError(requestTimeoutMs);
    }
    let timer: unknown;
    const received = (): void => {
      clock.clearTimer(timer);
      const silenceMs = Math.min(maxSilenceMs, end - clock.now());
      timer = clock.setTimer(() => timedOut.abort(), Math.max(0, silenceMs), true);
    };
    try {
      received();
      return await readReply(response, sent, { received, waiting: () => this.#queued(entered) });
    } catch (error) {
      if (this.#isQueued && clock.now() >= end) {
        return { timedOut: true };
      }
      throw error;
    } finally {
      clock.clearTimer(timer);
      this.#isQueued = false;
    }
  }

  #queued(entered: () => void): void {
    entered();
    this.#isQueued = true;
    this.#request.waiter?.onQueued?.(undefined);
    if (this.#isSettled) {
      this.#waitStream.abort();
    }
  }

  /** Releases the grant of a late reply. If the service queues the request instead, the client closes the connection. */
  #readLateReply(sending: Promise<IncomingMessage>, timedOut: AbortController, sent: Instant): void {
    const { clock } = this.#host;
    const end = (): void => timedOut.abort();
    const timer = clock.setTimer(end, replyGraceMs);
    sending
      .then((response) => readReply(response, sent, { received: () => undefined, waiting: end }))
      .then((reply) => {
        if ("granted" in reply) {
          this.#releaseGrant(this.#grant(reply.granted, validityOf(reply.granted, sent)));
        }
      })
      .catch(() => undefined) // no reply, so no grant to release
      .finally(() => clock.clearTimer(timer));
  }

  /** A grant that came after a wait is renewed first, because its validity is counted from the renewal. */
  async #accept(granted: WireLease, sent: Instant): Promise<AcquireResult> {
    const { client, requestTimeoutMs, clock } = this.#host;
    if (granted.queuedMs === 0) {
      return this.#grant(granted, validityOf(granted, sent));
    }
    const { key, ttlMs } = this.#request;
    const token = secretOf(granted.leaseId);
    const path = `/v1/leases/${granted.leaseId}/renew`;
    try {
      const response = await client.request({ method: "POST", path, body: { ttlMs } }, requestTimeoutMs);
      if (response.status === 200) {
        return this.#grant(granted, validityOf(leaseOf(response.status, response.body), response.sent));
      }
      throw retryableIfLost(errorOf(problemOf(response), key));
    } catch (error) {
      this.#host.release(key, token, clock.now() + ttlMs).catch(() => false);
      throw error;
    }
  }

  #grant(granted: WireLease, validity: Validity): AcquireResult {
    const { key } = this.#request;
    const token = secretOf(granted.leaseId);
    if (remainingValidityMs(validity, this.#host.clock) <= 0) {
      throw new EngineError("The grant had expired before it arrived", { key, outcome: "none", retryable: true }); // prettier-ignore
    }
    const fencingToken = BigInt(granted.fencingToken);
    const via = granted.queuedMs > 0 ? "message" : "reply";
    return {
      outcome: "granted",
      grant: { key, token, fencingToken, fencingCount: 1, validity, isClaim: false, via },
    };
  }

  #rejectWith(problem: WireProblem): AcquireResult {
    const error = errorOf(problem, this.#request.key);
    if (error instanceof WaitTimeoutError) {
      return { outcome: "held", holder: error.holder, position: error.position };
    }
    throw error;
  }

  #requestSpec(waitMs: number): HttpRequestSpec {
    const { capabilities, owner } = this.#host;
    return acquireSpec(this.#request, { waitMs, claimMs: capabilities.claimMs, owner });
  }
}

/** After the loss of an unconfirmed claim the waiter enqueues again. */
function retryableIfLost(error: Error): Error {
  return isLockError(error, "lease-lost")
    ? new EngineError("The grant had expired before it was confirmed", { outcome: "none", retryable: true })
    : error;
}
