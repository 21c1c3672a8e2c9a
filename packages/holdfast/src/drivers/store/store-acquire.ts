import type { AcquireRequest, AcquireResult, PendingAcquire } from "../../driver.ts";
import { EngineError } from "../../errors.ts";
import type { ArrivalOrder } from "../../runtime/arrival-order.ts";
import { instantNow, type Clock, type Instant } from "../../runtime/clock.ts";
import { backoffMs } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import { remainingValidityMs, validFrom } from "../../validity.ts";
import type { CleanUps } from "./clean-up.ts";
import type { StoreReply } from "./lease-store.ts";
import { entryTtlMs, pollDelayMs } from "./poll-delay.ts";
import { isRetryable, type StoreCalls } from "./store-calls.ts";
import type { WaitingAcquires } from "./waiting-acquires.ts";

/** The parts of the driver that an acquire uses. */
export interface StoreAcquireHost {
  readonly calls: StoreCalls;
  readonly cleanUps: CleanUps;
  readonly arrivalOrder: ArrivalOrder;
  readonly waiting: WaitingAcquires;
  readonly late: LateRequests;
  readonly owner: string;
}

/** The number of entries that starts the first sweep. */
const minSweepSize = 64;

/** The grants of which the engine may execute a request later. Each is remembered until its release, its loss, or the end of its validity. */
export class LateRequests {
  readonly #clock: Clock;
  readonly #grants = new Map<string, { readonly acquire: StoreAcquire; until: number }>();
  #sweepAt = minSweepSize;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#grants.size;
  }

  add(acquire: StoreAcquire, until: number): void {
    this.#grants.set(acquire.token, { acquire, until });
    if (this.#grants.size >= this.#sweepAt) {
      const now = this.#clock.now();
      for (const [token, grant] of this.#grants) {
        if (grant.until <= now) {
          this.#grants.delete(token);
        }
      }
      this.#sweepAt = Math.max(minSweepSize, 2 * this.#grants.size);
    }
  }

  extended(token: string, until: number): void {
    const grant = this.#grants.get(token);
    if (grant) {
      grant.until = until;
    }
  }

  /** The grant has ended without a release. */
  lost(token: string): void {
    this.#grants.delete(token);
  }

  /** The grant has been released. From now on late requests leave traces like those of a caller without a result. */
  released(token: string): void {
    const grant = this.#grants.get(token);
    if (grant && this.#grants.delete(token)) {
      grant.acquire.released();
    }
  }
}

type Reply<T extends StoreReply["outcome"]> = Extract<StoreReply, { outcome: T }>;

/** One request for a lock. A waiter keeps its queue entry, and repeats the request after a notification or a delay. */
export class StoreAcquire implements PendingAcquire {
  readonly request: AcquireRequest;
  readonly token: string;
  readonly result: Promise<AcquireResult>;
  ticket: string | undefined;
  readonly #host: StoreAcquireHost;
  /** How many polls have shown the same position. */
  #polls = 0;
  #position: number | undefined;
  #isSettled = false;
  /** The fencing token of the result. */
  #granted: bigint | undefined;
  /** A request failed or got no reply in time, and the engine may execute it later. */
  #mayBeExecuted = false;
  /** Ends the present pause. */
  #wake: AbortController | undefined;
  #isWoken = false;
  #settle!: { resolve: (acquired: AcquireResult) => void; reject: (reason: unknown) => void };

  constructor(host: StoreAcquireHost, request: AcquireRequest) {
    this.#host = host;
    this.request = request;
    this.token = host.calls.random.id();
    this.result = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    void this.#run();
  }

  /** The lock may be free: the next repeat is sent at once. */
  lockMayBeFree(): void {
    this.#polls = 0;
    this.#isWoken = true;
    this.#wake?.abort();
  }

  cancel(reason: unknown): void {
    if (!this.#isSettled) {
      this.#end();
      this.#settle.reject(reason);
      this.#abandon();
    }
  }

  /** See {@link LateRequests.released}. */
  released(): void {
    this.#granted = undefined;
    this.#cleanUp();
  }

  async #run(): Promise<void> {
    const { deadline } = this.request;
    try {
      const acquired = await (deadline === null ? this.#try() : this.#wait(deadline));
      if (acquired && !this.#isSettled) {
        if (acquired.outcome === "granted") {
          this.#granted = acquired.grant.fencingToken;
          if (this.#mayBeExecuted) {
            this.#host.late.add(this, acquired.grant.validity.until);
          }
        }
        this.#end();
        this.#settle.resolve(acquired);
        if (acquired.outcome === "held" && this.#mayBeExecuted) {
          this.#cleanUp(); // a request without a reply may be granted later, and no caller would release that grant
        }
        const isNextFree = acquired.outcome === "held" || this.request.lockMode !== undefined;
        if (isNextFree && this.ticket !== undefined) {
          this.#host.waiting.wakeNext(this.request.key); // the next waiter polls from now on, or shares the lock
        }
      }
    } catch (error) {
      this.#noteFailure(error);
      this.cancel(error);
    }
  }

  /** After a request without a reply in time, its reply may never come. */
  #noteFailure(error: unknown): void {
    this.#mayBeExecuted ||= error instanceof EngineError && error.outcome === "unknown";
    if (this.#isSettled && this.#granted === undefined) {
      this.#abandon();
    }
  }

  #end(): void {
    this.#isSettled = true;
    this.#wake?.abort();
    this.#host.waiting.remove(this);
  }

  /** Removes the traces of requests that were answered or have failed. `#answered` handles those that are under way. */
  #abandon(): void {
    if (this.ticket !== undefined || this.#mayBeExecuted) {
      this.#cleanUp();
    }
  }

  #cleanUp(): void {
    const { calls, cleanUps } = this.#host;
    const { key, ttlMs } = this.request;
    const until = calls.clock.now() + ttlMs + calls.graceMs;
    cleanUps.remove({ key, token: this.token }, until, this.#mayBeExecuted);
  }

  async #try(): Promise<AcquireResult> {
    const { calls } = this.#host;
    const { key } = this.request;
    const { reply, sent } = await calls.repeated(
      key,
      () => this.#send(null),
      (failure) => this.#noteFailure(failure),
    );
    const acquired = this.#accept(reply, sent);
    if (acquired === undefined) {
      this.#mayBeExecuted = true;
      const tookMs = Math.round(calls.clock.now() - sent.now);
      const message = `The grant expired before its reply, which took ${tookMs} ms`;
      throw new EngineError(message, { key, outcome: "unknown", retryable: true });
    }
    return acquired;
  }

  async #wait(deadline: number): Promise<AcquireResult | undefined> {
    const { calls, arrivalOrder } = this.#host;
    const { clock, commandTimeoutMs } = calls;
    const { key } = this.request;
    const limitMs = Math.max(commandTimeoutMs, deadline - clock.now());
    const entered = await arrivalOrder.enterWithin(clock, limitMs, key);
    if (!entered) {
      const message = "The engine has not answered the earlier requests for this key";
      throw new EngineError(message, { key, outcome: "none", retryable: true });
    }
    try {
      return await this.#repeatUntil(deadline, entered);
    } finally {
      entered();
    }
  }

  /** Repeats the request until its grant or the deadline. The last repeat takes the queue entry away, and names the holder. */
  async #repeatUntil(deadline: number, entered: () => void): Promise<AcquireResult | undefined> {
    const { calls } = this.#host;
    const { clock, random } = calls;
    let failure: Error | undefined;
    for (let failures = 0; !this.#isSettled;) {
      const remainingMs = Math.max(0, deadline - clock.now());
      if (remainingMs === 0 && failure !== undefined) {
        throw failure;
      }
      try {
        const { reply, sent } = await calls.once(this.request.key, () => this.#send(remainingMs));
        [failures, failure] = [0, undefined];
        const acquired = this.#accept(reply, sent);
        if (acquired) {
          return acquired;
        } else if (reply.outcome === "queued") {
          entered();
          await this.#untilNextPoll(reply, deadline);
        }
      } catch (error) {
        if (!isRetryable(error)) {
          throw error;
        }
        failure = error as Error;
        this.#noteFailure(error);
        entered();
        await this.#pause(Math.min(backoffMs(random, failures), Math.max(0, deadline - clock.now())));
        failures += 1;
      }
    }
    return undefined;
  }

  async #send(waitMs: number | null): Promise<{ reply: StoreReply; sent: Instant }> {
    const { calls, owner } = this.#host;
    const { key, lockMode, ttlMs, info } = this.request;
    const sent = instantNow(calls.clock);
    try {
      const attempt = {
        key,
        token: this.token,
        lockMode,
        ttlMs: ttlMs + calls.graceMs,
        waitMs,
        ticket: this.ticket,
        entryTtlMs,
        owner: info?.owner ?? owner,
        reason: info?.reason,
        labels: info?.labels,
      };
      const reply = await calls.store.acquire(attempt, () => this.#isSettled);
      this.#answered(reply);
      return { reply, sent };
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  /**
   * Removes what a late request left, if the caller no longer waits. A late reply may repeat the grant of the result, which is in use.
   * A queue entry beside that grant is removed after its release.
   */
  #answered(reply: StoreReply): void {
    if (!this.#isSettled || reply.outcome === "held") {
      return;
    }
    const isOfResult =
      this.#granted !== undefined && (reply.outcome === "queued" || reply.fencingToken === this.#granted);
    if (!isOfResult) {
      this.#cleanUp();
    }
  }

  #failed(error: unknown): void {
    this.#mayBeExecuted ||= this.#host.calls.hasUnknownOutcome(error);
    if (this.#isSettled && this.#granted === undefined) {
      this.#abandon();
    }
  }

  /** The result of a reply; undefined: the request has to be repeated. */
  #accept(reply: StoreReply, sent: Instant): AcquireResult | undefined {
    switch (reply.outcome) {
      case "held":
        return { outcome: "held", holder: reply.holder, position: reply.position };
      case "granted":
        return this.#grant(reply, sent);
      case "queued":
        this.#queued(reply);
        return undefined;
    }
  }

  #queued({ ticket, position }: Reply<"queued">): void {
    this.request.waiter?.onQueued?.(position);
    this.ticket = ticket;
    if (!this.#isSettled) {
      this.#host.waiting.queued(this, ticket);
    }
  }

  /** A grant whose validity ended before its reply is requested again: the repeat extends the same grant. */
  #grant({ fencingToken, ttlMs }: Reply<"granted">, sent: Instant): AcquireResult | undefined {
    const { key } = this.request;
    const validity = validFrom(sent, ttlMs ?? this.request.ttlMs);
    if (remainingValidityMs(validity, this.#host.calls.clock) <= 0) {
      return undefined;
    }
    const grant = { key, token: this.token, fencingToken, fencingCount: 1, validity, isClaim: false };
    return { outcome: "granted", grant };
  }

  async #untilNextPoll({ position, remainingMs }: Reply<"queued">, deadline: number): Promise<void> {
    const { clock, random, store } = this.#host.calls;
    const isWoken = store.isNotified || !this.#host.waiting.isFirst(this);
    if (position !== this.#position) {
      [this.#position, this.#polls] = [position, 0];
    }
    const delayMs = pollDelayMs(
      random,
      { position, remainingMs, polls: this.#polls, isWoken },
      store.pollLimits,
    );
    this.#polls += 1;
    await this.#pause(Math.min(delayMs, Math.max(0, deadline - clock.now())));
  }

  async #pause(ms: number): Promise<void> {
    if (!this.#isWoken && !this.#isSettled) {
      this.#wake = new AbortController();
      await pause(this.#host.calls.clock, ms, true, this.#wake.signal);
      this.#wake = undefined;
    }
    this.#isWoken = false;
  }
}
