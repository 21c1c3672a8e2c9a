import type { AcquireResult, AcquireRequest, Grant, PendingAcquire } from "../../../driver.ts";
import { EngineError } from "../../../errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { jittered, type Random } from "../../../runtime/random.ts";
import { pause } from "../../../runtime/timeout.ts";
import { engineError, isTransient, outcomeOf } from "../server/errors.ts";

/** How long a request waits after a failed confirmation, before its next attempt. */
const pauseMs = 200;

/** The replicated driver, as its requests need it. */
interface ReplicatedRequestHost {
  readonly clock: Clock;
  readonly random: Random;
  /** The grant as the replicas have acknowledged it. Rejects with an `EngineError`. */
  confirm(grant: Grant, request: AcquireRequest): Promise<Grant>;
  /** Releases the grant. */
  rollBack(grant: Grant): Promise<boolean>;
  /** Requests the lock from the primary again. */
  acquireAgain(request: AcquireRequest): PendingAcquire;
}

/** One request, settled when the replicas have acknowledged its grant. Its cancellation does not wait for the replicas. */
export class ReplicatedRequest implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #host: ReplicatedRequestHost;
  readonly #request: AcquireRequest;
  #pending: PendingAcquire;
  /** The grant of the primary, until the replicas have acknowledged it. */
  #unconfirmed: Grant | undefined;
  readonly #cancelled = new AbortController();
  /** The failure of the last confirmation. If the next attempt has too little time for a reply, this is the error to report. */
  #failure: Error | undefined;
  #resolve!: (acquired: AcquireResult) => void;
  #reject!: (reason: unknown) => void;

  constructor(host: ReplicatedRequestHost, request: AcquireRequest, pending: PendingAcquire) {
    this.#host = host;
    this.#request = request;
    this.#pending = pending;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#run().catch(this.#reject);
  }

  cancel(reason: unknown): void {
    this.#cancelled.abort();
    this.#pending.cancel(reason);
    void this.#rollBack(); // the extension in flight cannot create the grant again
    this.#reject(reason);
  }

  get #isCancelled(): boolean {
    return this.#cancelled.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#isCancelled) {
      const acquired = await this.#pending.result.catch((error: unknown) => {
        throw this.#failure !== undefined && isTransient(error) ? this.#failure : error;
      });
      if (acquired.outcome === "held") {
        this.#resolve(acquired);
        return;
      }
      this.#unconfirmed = acquired.grant;
      if (await this.#confirm(acquired.grant)) {
        return;
      }
      await pause(this.#host.clock, jittered(this.#host.random, pauseMs, 0.5), true, this.#cancelled.signal);
      if (!this.#isCancelled) {
        this.#pending = this.#host.acquireAgain(this.#request);
      }
    }
  }

  /** @returns false: the grant was rolled back, and there is time for another attempt */
  async #confirm(grant: Grant): Promise<boolean> {
    const { key, deadline } = this.#request;
    const { clock } = this.#host;
    try {
      if (!this.#isCancelled) {
        const confirmed = await this.#host.confirm(grant, this.#request);
        if (this.#unconfirmed) {
          this.#unconfirmed = undefined;
          this.#resolve({ outcome: "granted", grant: confirmed });
        }
        return true;
      }
    } catch (failure) {
      const isRolledBack = await this.#rollBack();
      const isInTime = deadline !== null && clock.now() + pauseMs < deadline;
      this.#failure = failureAfter(failure, key, isRolledBack);
      if (isInTime && isTransient(failure) && !this.#isCancelled) {
        return false;
      }
      throw this.#failure;
    }
    return this.#rollBack(); // cancelled before the confirmation
  }

  /** @returns whether the primary has confirmed the release of the grant */
  async #rollBack(): Promise<boolean> {
    const grant = this.#unconfirmed;
    this.#unconfirmed = undefined;
    return grant !== undefined && (await this.#host.rollBack(grant));
  }
}

/** The error of a failed confirmation. Its outcome is `none` if the primary has confirmed the release of the grant. */
function failureAfter(failure: unknown, key: string | undefined, isRolledBack: boolean): Error {
  const error = engineError(failure, key, outcomeOf(failure));
  if (!(error instanceof EngineError) || !isRolledBack) {
    return error;
  }
  const { message, retryable, cause } = error;
  const code = error.code === "replicas-not-reached" ? error.code : "engine-unavailable";
  return new EngineError(message, { key, outcome: "none", retryable, cause, code });
}
