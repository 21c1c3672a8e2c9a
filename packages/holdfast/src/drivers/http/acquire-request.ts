import type { IncomingMessage } from "node:http";

import { momentOf, type Moment } from "../../runtime/clock.ts";
import type { Acquired, AcquireRequest, Pending } from "../../driver.ts";
import { EngineError, isLockError, WaitTimeoutError, type LockError } from "../../errors.ts";
import { backoffMs } from "../../runtime/random.ts";
import { leftOf, type Validity } from "../../validity.ts";
import { pause, within } from "../../runtime/timeout.ts";
import { bodyOf, type Answer } from "./client.ts";
import type { HttpDriver } from "./driver.ts";
import { eventsOf } from "./sse.ts";
import { errorOf, leaseOf, problemOf } from "./problems.ts";
import { secretOf, type WireAcquire, type WireLease, type WireProblem } from "./wire.ts";

/** How long an answer that nobody waits for any more is listened for: it may be a grant, to be given back. */
const lateAnswerMs = 60_000;
/** How much longer than its deadline a wait may take to say who holds the lock. */
const farewellMs = 1_000;
/** The service gives a sign of life every 15 s. */
const longestSilenceMs = 40_000;

type Told =
  | { readonly granted: WireLease; readonly sent: Moment }
  | { readonly problem: WireProblem }
  | { readonly timedOut: true };

/** One request for a lock by the service. Who waits has one connection open, and leaves the queue by closing it. */
export class HttpRequest implements Pending {
  readonly result: Promise<Acquired>;
  readonly #host: HttpDriver;
  readonly #request: AcquireRequest;
  /** Aborted when the connection is to be closed. */
  readonly #stream = new AbortController();
  #isQueued = false;
  #isSettled = false;
  #reject!: (reason: unknown) => void;

  constructor(host: HttpDriver, request: AcquireRequest) {
    this.#host = host;
    this.#request = request;
    this.result = new Promise((resolve, reject) => {
      this.#reject = reject;
      const { deadline } = request;
      (deadline === null ? this.#try() : this.#wait(deadline)).then(
        (acquired) => {
          if (!this.#isSettled) {
            this.#isSettled = true;
            resolve(acquired);
          } else {
            this.#giveBack(acquired);
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
        this.#stream.abort();
      }
    }
  }

  async #try(): Promise<Acquired> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const asked = client.ask(this.#question(0), lateAnswerMs).then((answer) => this.#answered(answer));
    const answer = await within(clock, requestTimeoutMs, asked);
    if (answer === undefined) {
      asked.then((late) => this.#giveBack(late)).catch(() => undefined);
      throw client.silent(requestTimeoutMs);
    }
    return answer;
  }

  #answered({ status, body, sent }: Answer): Acquired {
    if (status === 200 || status === 201) {
      const granted = leaseOf(status, body);
      return this.#grant(granted, validityOf(granted, sent));
    }
    return this.#refused(problemOf({ status, body }));
  }

  /** A grant that came when its caller did not wait for it. */
  #giveBack(acquired: Acquired): void {
    if (acquired.outcome === "granted") {
      const { key, token, validity } = acquired.grant;
      this.#host.release(key, token, validity.until).catch(() => false);
    }
  }

  /** Lives through a service, or an engine behind it, that fails for a while. */
  async #wait(deadline: number): Promise<Acquired> {
    const { clock, random } = this.#host;
    let failures = 0;
    let failure: LockError | undefined;
    while (!this.#isSettled) {
      const leftMs = deadline - clock.now();
      if (leftMs <= 0 && failure !== undefined) {
        throw failure;
      }
      try {
        const acquired = await this.#stand(deadline);
        if (acquired.outcome === "granted" || leftMs <= longestWaitMs) {
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
  async #stand(deadline: number): Promise<Acquired> {
    const entered = await this.#enter(deadline);
    let told: Told;
    try {
      told = this.#isSettled ? { timedOut: true } : await this.#listen(deadline, entered);
    } catch (error) {
      throw this.#host.client.failure(error);
    } finally {
      entered();
    }
    if ("timedOut" in told) {
      return { outcome: "held" };
    }
    return "granted" in told ? this.#accept(told.granted, told.sent) : this.#refused(told.problem);
  }

  /** Rejects where those before us are not answered for as long as we would wait for an answer ourselves. */
  async #enter(deadline: number): Promise<() => void> {
    const { clock, entries, requestTimeoutMs } = this.#host;
    const turn = entries.enter(this.#request.key);
    const entered = await within(clock, Math.max(requestTimeoutMs, deadline - clock.now()), turn);
    if (!entered) {
      void turn.then((late) => {
        late(); // our place is kept until then: those behind us come after those before us
      });
      throw new EngineError("The lock service does not answer those who asked before", { outcome: "none", retryable: true }); // prettier-ignore
    }
    return entered;
  }

  async #listen(deadline: number, entered: () => void): Promise<Told> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const end = deadline + farewellMs;
    const sent = momentOf(clock);
    const over = new AbortController();
    const question = {
      ...this.#question(Math.max(0, deadline - sent.now)),
      accept: "text/event-stream",
    } as const;
    const sending = client.send(question, AbortSignal.any([over.signal, this.#stream.signal]));
    const response = await within(clock, requestTimeoutMs, sending);
    if (response === undefined) {
      this.#hearOut(sending, over, sent);
      throw client.silent(requestTimeoutMs);
    }
    let timer: unknown;
    const heard = (): void => {
      clock.clearTimer(timer);
      const silenceMs = Math.min(longestSilenceMs, end - clock.now());
      timer = clock.setTimer(() => over.abort(), Math.max(0, silenceMs), true);
    };
    try {
      heard();
      return await this.#read(response, sent, { heard, waiting: () => this.#queued(entered) });
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
    if (this.#isSettled) {
      this.#stream.abort();
    }
  }

  /** The answer to a question that was given up may be a grant. If it is that we wait, we do not. */
  #hearOut(sending: Promise<IncomingMessage>, over: AbortController, sent: Moment): void {
    const { clock } = this.#host;
    const end = (): void => over.abort();
    const timer = clock.setTimer(end, lateAnswerMs);
    sending
      .then((response) => this.#read(response, sent, { heard: () => undefined, waiting: end }))
      .then((told) => {
        if ("granted" in told) {
          this.#giveBack(this.#grant(told.granted, validityOf(told.granted, sent)));
        }
      })
      .catch(() => undefined) // there is none
      .finally(() => clock.clearTimer(timer));
  }

  async #read(
    response: IncomingMessage,
    sent: Moment,
    { heard, waiting }: { readonly heard: () => void; readonly waiting: () => void },
  ): Promise<Told> {
    const status = response.statusCode ?? 0;
    if (response.headers["content-type"]?.startsWith("text/event-stream") !== true) {
      const body: unknown = await bodyOf(response);
      return { problem: problemOf({ status, body }) };
    }
    for await (const { event, data } of eventsOf(response, heard)) {
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
  async #accept(granted: WireLease, sent: Moment): Promise<Acquired> {
    const { client, requestTimeoutMs, clock } = this.#host;
    if (granted.queuedMs === 0) {
      return this.#grant(granted, validityOf(granted, sent));
    }
    const { key, ttlMs } = this.#request;
    const token = secretOf(granted.leaseId);
    const path = `/v1/leases/${granted.leaseId}/renew`;
    try {
      const answer = await client.ask({ method: "POST", path, body: { ttlMs } }, requestTimeoutMs);
      if (answer.status === 200) {
        return this.#grant(granted, validityOf(leaseOf(answer.status, answer.body), answer.sent));
      }
      throw transient(errorOf(problemOf(answer), key));
    } catch (error) {
      this.#host.release(key, token, clock.now() + ttlMs).catch(() => false);
      throw error;
    }
  }

  #grant(granted: WireLease, validity: Validity): Acquired {
    const { key } = this.#request;
    const token = secretOf(granted.leaseId);
    if (leftOf(validity, this.#host.clock) <= 0) {
      throw new EngineError("The grant had expired before it arrived", { key, outcome: "none", retryable: true }); // prettier-ignore
    }
    const fencingToken = BigInt(granted.fencingToken);
    return {
      outcome: "granted",
      grant: { key, token, fencingToken, fencingCount: 1, validity, isClaim: false },
    };
  }

  #refused(problem: WireProblem): Acquired {
    const error = errorOf(problem, this.#request.key);
    if (error instanceof WaitTimeoutError) {
      return { outcome: "held", holder: error.holder, position: error.position };
    }
    throw error;
  }

  #question(waitMs: number): { method: "POST"; path: string; body: WireAcquire } {
    const { key, share, ttlMs, words } = this.#request;
    const waits = this.#request.deadline !== null;
    const body: WireAcquire = {
      key,
      ...(share?.kind === "read-write" && { mode: share.mode }),
      ...(share?.kind === "semaphore" && { mode: "semaphore", limit: share.limit, permits: share.permits }),
      ttlMs,
      waitMs: Math.min(Math.ceil(waitMs), longestWaitMs),
      ...(waits && { claimMs: Math.min(ttlMs, this.#host.capabilities.claimMs) }),
      ...words,
      owner: words?.owner ?? this.#host.owner,
    };
    return { method: "POST", path: "/v1/leases", body };
  }
}

const longestWaitMs = 86_400_000;

/** Counted from when the question was sent: of a wait it is worth nothing, and asked for anew. */
export function validityOf({ validMs }: Pick<WireLease, "validMs">, sent: Moment): Validity {
  return { until: sent.now + validMs, untilWall: sent.wall + validMs };
}

/** A claim that was lost before it was confirmed: we wait again. */
function transient(error: Error): Error {
  return isLockError(error, "lease-lost")
    ? new EngineError("The grant had expired before it was confirmed", { outcome: "none", retryable: true })
    : error;
}
