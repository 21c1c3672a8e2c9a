import type { IncomingMessage } from "node:http";

import { instantNow, type Instant } from "../../runtime/clock.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire } from "../../driver.ts";
import { EngineError, isLockError, WaitTimeoutError, type LockError } from "../../errors.ts";
import { backoffMs } from "../../runtime/random.ts";
import { remainingValidityMs, type Validity } from "../../validity.ts";
import { pause, withTimeout } from "../../runtime/timeout.ts";
import { bodyOf, type HttpResponse } from "./client.ts";
import type { HttpDriver } from "./driver.ts";
import { eventsOf } from "./sse.ts";
import { errorOf, leaseOf, problemOf } from "./problems.ts";
import { secretOf, type WireAcquire, type WireLease, type WireProblem } from "./wire.ts";

/** How long an answer that nobody waits for any more is listened for: it may be a grant, to be given back. */
const replyGraceMs = 60_000;
/** How much longer than its deadline a wait may take to say who holds the lock. */
const timeoutGraceMs = 1_000;
/** The service gives a sign of life every 15 s. */
const maxSilenceMs = 40_000;

type AcquireReply =
  | { readonly granted: WireLease; readonly sent: Instant }
  | { readonly problem: WireProblem }
  | { readonly timedOut: true };

/** One request for a lock by the service. Who waits has one connection open, and leaves the queue by closing it. */
export class HttpAcquire implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #host: HttpDriver;
  readonly #request: AcquireRequest;
  /** Aborted when the connection is to be closed. */
  readonly #waitStream = new AbortController();
  #isQueued = false;
  #isSettled = false;
  #reject!: (reason: unknown) => void;

  constructor(host: HttpDriver, request: AcquireRequest) {
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

  /** Before the service has told that we wait, its answer is heard out: it may be a grant. */
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
    const asked = client
      .request(this.#requestSpec(0), replyGraceMs)
      .then((answer) => this.#handleReply(answer));
    const answer = await withTimeout(clock, requestTimeoutMs, asked);
    if (answer === undefined) {
      asked.then((late) => this.#releaseGrant(late)).catch(() => undefined);
      throw client.noReplyError(requestTimeoutMs);
    }
    return answer;
  }

  #handleReply({ status, body, sent }: HttpResponse): AcquireResult {
    if (status === 200 || status === 201) {
      const granted = leaseOf(status, body);
      return this.#grant(granted, validityOf(granted, sent));
    }
    return this.#rejectWith(problemOf({ status, body }));
  }

  /** A grant that came when its caller did not wait for it. */
  #releaseGrant(acquired: AcquireResult): void {
    if (acquired.outcome === "granted") {
      const { key, token, validity } = acquired.grant;
      this.#host.release(key, token, validity.until).catch(() => false);
    }
  }

  /** Lives through a service, or an engine behind it, that fails for a while. */
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
    return { outcome: "held" }; // cancelled: nobody hears it
  }

  /** Stands in the service's queue once. Rejects with what may pass, or not. */
  async #enqueue(deadline: number): Promise<AcquireResult> {
    const previous = await this.#awaitTurn(deadline);
    let reply: AcquireReply;
    try {
      reply = this.#isSettled ? { timedOut: true } : await this.#listen(deadline, previous);
    } catch (error) {
      throw this.#host.client.failure(error);
    } finally {
      previous();
    }
    if ("timedOut" in reply) {
      return { outcome: "held" };
    }
    return "granted" in reply ? this.#accept(reply.granted, reply.sent) : this.#rejectWith(reply.problem);
  }

  /** Rejects where those before us are not answered for as long as we would wait for an answer ourselves. */
  async #awaitTurn(deadline: number): Promise<() => void> {
    const { clock, arrivalOrder, requestTimeoutMs } = this.#host;
    const turn = arrivalOrder.enter(this.#request.key);
    const previous = await withTimeout(clock, Math.max(requestTimeoutMs, deadline - clock.now()), turn);
    if (!previous) {
      void turn.then((late) => {
        late(); // our place is kept until then: those behind us come after those before us
      });
      throw new EngineError("The lock service does not answer those who asked before", { outcome: "none", retryable: true }); // prettier-ignore
    }
    return previous;
  }

  async #listen(deadline: number, previous: () => void): Promise<AcquireReply> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const end = deadline + timeoutGraceMs;
    const sent = instantNow(clock);
    const over = new AbortController();
    const spec = {
      ...this.#requestSpec(Math.max(0, deadline - sent.now)),
      accept: "text/event-stream",
    } as const;
    const sending = client.send(spec, AbortSignal.any([over.signal, this.#waitStream.signal]));
    const response = await withTimeout(clock, requestTimeoutMs, sending);
    if (response === undefined) {
      this.#readToEnd(sending, over, sent);
      throw client.noReplyError(requestTimeoutMs);
    }
    let timer: unknown;
    const receivedAt = (): void => {
      clock.clearTimer(timer);
      const silenceMs = Math.min(maxSilenceMs, end - clock.now());
      timer = clock.setTimer(() => over.abort(), Math.max(0, silenceMs), true);
    };
    try {
      receivedAt();
      return await this.#read(response, sent, { heard: receivedAt, waiting: () => this.#queued(previous) });
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

  #queued(previous: () => void): void {
    previous();
    this.#isQueued = true;
    if (this.#isSettled) {
      this.#waitStream.abort();
    }
  }

  /** The answer to a question that was given up may be a grant. If it is that we wait, we do not. */
  #readToEnd(sending: Promise<IncomingMessage>, over: AbortController, sent: Instant): void {
    const { clock } = this.#host;
    const end = (): void => over.abort();
    const timer = clock.setTimer(end, replyGraceMs);
    sending
      .then((response) => this.#read(response, sent, { heard: () => undefined, waiting: end }))
      .then((reply) => {
        if ("granted" in reply) {
          this.#releaseGrant(this.#grant(reply.granted, validityOf(reply.granted, sent)));
        }
      })
      .catch(() => undefined) // there is none
      .finally(() => clock.clearTimer(timer));
  }

  async #read(
    response: IncomingMessage,
    sent: Instant,
    { heard: receivedAt, waiting }: { readonly heard: () => void; readonly waiting: () => void },
  ): Promise<AcquireReply> {
    const status = response.statusCode ?? 0;
    if (response.headers["content-type"]?.startsWith("text/event-stream") !== true) {
      const body: unknown = await bodyOf(response);
      return { problem: problemOf({ status, body }) };
    }
    for await (const { event, data } of eventsOf(response, receivedAt)) {
      if (event === "waiting") {
        waiting();
      } else if (event === "granted") {
        return { granted: leaseOf(status, JSON.parse(data)), sent };
      } else if (event === "problem") {
        return { problem: problemOf({ status, body: JSON.parse(data) as unknown }) };
      }
    }
    throw new Error("the stream ended");
  }

  /** A grant that came after a wait is made a whole one first, and dated by that. */
  async #accept(granted: WireLease, sent: Instant): Promise<AcquireResult> {
    const { client, requestTimeoutMs, clock } = this.#host;
    if (granted.queuedMs === 0) {
      return this.#grant(granted, validityOf(granted, sent));
    }
    const { key, ttlMs } = this.#request;
    const token = secretOf(granted.leaseId);
    const path = `/v1/leases/${granted.leaseId}/renew`;
    try {
      const answer = await client.request({ method: "POST", path, body: { ttlMs } }, requestTimeoutMs);
      if (answer.status === 200) {
        return this.#grant(granted, validityOf(leaseOf(answer.status, answer.body), answer.sent));
      }
      throw transient(errorOf(problemOf(answer), key));
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
    return {
      outcome: "granted",
      grant: { key, token, fencingToken, fencingCount: 1, validity, isClaim: false },
    };
  }

  #rejectWith(problem: WireProblem): AcquireResult {
    const error = errorOf(problem, this.#request.key);
    if (error instanceof WaitTimeoutError) {
      return { outcome: "held", holder: error.holder, position: error.position };
    }
    throw error;
  }

  #requestSpec(waitMs: number): { method: "POST"; path: string; body: WireAcquire } {
    const { key, lockMode, ttlMs, info } = this.#request;
    const waits = this.#request.deadline !== null;
    const body: WireAcquire = {
      key,
      ...(lockMode?.kind === "read-write" && { mode: lockMode.mode }),
      ...(lockMode?.kind === "semaphore" && {
        mode: "semaphore",
        limit: lockMode.limit,
        permits: lockMode.permits,
      }),
      ttlMs,
      waitMs: Math.min(Math.ceil(waitMs), maxWaitMs),
      ...(waits && { claimMs: Math.min(ttlMs, this.#host.capabilities.claimMs) }),
      ...info,
      owner: info?.owner ?? this.#host.owner,
    };
    return { method: "POST", path: "/v1/leases", body };
  }
}

const maxWaitMs = 86_400_000;

/** Counted from when the question was sent: of a wait it is worth nothing, and asked for anew. */
export function validityOf({ validMs }: Pick<WireLease, "validMs">, sent: Instant): Validity {
  return { until: sent.now + validMs, untilWall: sent.wall + validMs };
}

/** A claim that was lost before it was confirmed: we wait again. */
function transient(error: Error): Error {
  return isLockError(error, "lease-lost")
    ? new EngineError("The grant had expired before it was confirmed", { outcome: "none", retryable: true })
    : error;
}
