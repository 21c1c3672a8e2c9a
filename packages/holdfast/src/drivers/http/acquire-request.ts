import type { AcquireRequest, AcquireResult, PendingAcquire } from "../../driver.ts";
import { EngineError, isLockError, type LockError } from "../../errors.ts";
import { instantNow, type Instant } from "../../runtime/clock.ts";
import { backoffMs, jittered } from "../../runtime/random.ts";
import { pause, withTimeout } from "../../runtime/timeout.ts";
import { maxWaitMs, readReply, validityOf, type AcquireReply } from "./acquire-wire.ts";
import { OneRequest, replyGraceMs, type AcquireHost } from "./one-request.ts";
import type { TransportReply } from "./transport.ts";

/** How long after the deadline the service may still report the holder. */
const timeoutGraceMs = 1_000;
/** The service sends a comment every 15 s, so a silence of this length means a broken connection. */
const maxSilenceMs = 40_000;
/** The time between two tries of a waiter without a connection for an event stream. */
const pollMs = 250;

/** One acquire by the lock service. A waiter keeps one connection open, and leaves the queue by closing the connection. */
export class HttpAcquire implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #host: AcquireHost;
  readonly #request: OneRequest;
  readonly #key: string;
  readonly #waiter: AcquireRequest["waiter"];
  /** Aborted to close the connection of the waiter. */
  readonly #waitStream = new AbortController();
  #isQueued = false;
  #isSettled = false;
  #reject!: (reason: unknown) => void;

  constructor(host: AcquireHost, request: AcquireRequest) {
    this.#host = host;
    this.#request = new OneRequest(host, request);
    this.#key = request.key;
    this.#waiter = request.waiter;
    this.result = new Promise((resolve, reject) => {
      this.#reject = reject;
      const { deadline } = request;
      (deadline === null ? this.#request.tryOnce() : this.#wait(deadline)).then(
        (acquired) => {
          if (!this.#isSettled) {
            this.#isSettled = true;
            resolve(acquired);
          } else {
            this.#request.releaseGrant(acquired);
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
        const acquired = await this.#waitInTurn(deadline);
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

  /**
   * Waits after the earlier waiters of this process for the key. With few connections a waiter ends its turn only with its wait, because
   * a later waiter without a queue entry would overtake the earlier ones.
   */
  async #waitInTurn(deadline: number): Promise<AcquireResult> {
    const { client, clock, arrivalOrder, requestTimeoutMs } = this.#host;
    const limitMs = Math.max(client.hasFewConnections ? 0 : requestTimeoutMs, deadline - clock.now());
    const endTurn = await arrivalOrder.enterWithin(clock, limitMs, this.#key);
    if (endTurn) {
      return this.#waitForStream(deadline, client.hasFewConnections ? () => undefined : endTurn).finally(
        endTurn,
      );
    } else if (client.hasFewConnections) {
      return { outcome: "held" };
    }
    throw new EngineError("The lock service has not answered the earlier requests for this key", { outcome: "none", retryable: true }); // prettier-ignore
  }

  /** Polls until there is a connection for the event stream, then waits in the service's queue. */
  async #waitForStream(deadline: number, queued: () => void): Promise<AcquireResult> {
    const { client, clock, random } = this.#host;
    while (!this.#isSettled) {
      const endStream = client.reserveStream();
      if (endStream) {
        return this.#enqueue(deadline, queued).finally(endStream);
      }
      const acquired = await this.#request.tryOnce();
      if (acquired.outcome === "granted" || clock.now() >= deadline) {
        return acquired;
      }
      await pause(clock, Math.min(jittered(random, pollMs, 1), Math.max(0, deadline - clock.now())));
    }
    return { outcome: "held" };
  }

  /** Waits in the service's queue once. */
  async #enqueue(deadline: number, queued: () => void): Promise<AcquireResult> {
    let reply: AcquireReply;
    try {
      reply = this.#isSettled ? { timedOut: true } : await this.#listen(deadline, queued);
    } catch (error) {
      throw this.#host.client.failure(error);
    }
    queued();
    if ("timedOut" in reply) {
      return { outcome: "held" };
    } else if ("problem" in reply) {
      return this.#request.rejectWith(reply.problem);
    }
    return this.#request.accept(reply.granted, validityOf(reply.granted, reply.sent));
  }

  async #listen(deadline: number, queued: () => void): Promise<AcquireReply> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const end = deadline + timeoutGraceMs;
    const sent = instantNow(clock);
    const timedOut = new AbortController();
    const spec = {
      ...this.#request.spec(Math.max(0, deadline - sent.now)),
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
      return await readReply(response, sent, { received, waiting: () => this.#queued(queued) });
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

  #queued(queued: () => void): void {
    queued();
    this.#isQueued = true;
    this.#waiter?.onQueued?.(undefined);
    if (this.#isSettled) {
      this.#waitStream.abort();
    }
  }

  /** Releases the grant of a late reply. If the service queues the request instead, the client closes the connection. */
  #readLateReply(sending: Promise<TransportReply>, timedOut: AbortController, sent: Instant): void {
    const { clock } = this.#host;
    const end = (): void => timedOut.abort();
    const timer = clock.setTimer(end, replyGraceMs);
    sending
      .then((response) => readReply(response, sent, { received: () => undefined, waiting: end }))
      .then((reply) => {
        if ("granted" in reply) {
          this.#request.releaseGrant(this.#request.grant(reply.granted, validityOf(reply.granted, sent)));
        }
      })
      .catch(() => undefined) // no reply, so no grant to release
      .finally(() => clock.clearTimer(timer));
  }
}
