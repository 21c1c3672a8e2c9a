import type { AcquireRequest, AcquireResult, Capabilities } from "../../driver.ts";
import { EngineError, isLockError, WaitTimeoutError } from "../../errors.ts";
import type { ArrivalOrder } from "../../runtime/arrival-order.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { remainingValidityMs, type Validity } from "../../validity.ts";
import { acquireSpec, validityOf } from "./acquire-wire.ts";
import type { Client, HttpRequestSpec, HttpResponse } from "./client.ts";
import { errorOf, leaseOf, problemOf } from "./problems.ts";
import { secretOf, type WireLease, type WireProblem } from "./wire.ts";

/** How long the client waits for the reply to an abandoned request. The reply may be a grant, which the client then releases. */
export const replyGraceMs = 60_000;

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

/** The requests of one acquire, and the results of their replies. */
export class OneRequest {
  readonly #host: AcquireHost;
  readonly #request: AcquireRequest;

  constructor(host: AcquireHost, request: AcquireRequest) {
    this.#host = host;
    this.#request = request;
  }

  /** Tries once, without a wait. The grant of a late reply is released. */
  async tryOnce(): Promise<AcquireResult> {
    const { client, clock, requestTimeoutMs } = this.#host;
    const pending = client
      .request(this.spec(0), replyGraceMs)
      .then((response) => this.#handleReply(response));
    const reply = await withTimeout(clock, requestTimeoutMs, pending);
    if (reply === undefined) {
      pending.then((late) => this.releaseGrant(late)).catch(() => undefined);
      throw client.noReplyError(requestTimeoutMs);
    }
    return reply;
  }

  spec(waitMs: number): HttpRequestSpec {
    const { capabilities, owner } = this.#host;
    return acquireSpec(this.#request, { waitMs, claimMs: capabilities.claimMs, owner });
  }

  /** A grant that came after a wait is renewed first, because its validity is counted from the renewal. */
  async accept(granted: WireLease, validity: Validity): Promise<AcquireResult> {
    const { client, requestTimeoutMs, clock } = this.#host;
    if (granted.queuedMs === 0) {
      return this.grant(granted, validity);
    }
    const { key, ttlMs } = this.#request;
    const token = secretOf(granted.leaseId);
    const path = `/v1/leases/${granted.leaseId}/renew`;
    try {
      const response = await client.request({ method: "POST", path, body: { ttlMs } }, requestTimeoutMs);
      if (response.status === 200) {
        return this.grant(granted, validityOf(leaseOf(response.status, response.body), response.sent));
      }
      throw retryableIfLost(errorOf(problemOf(response), key));
    } catch (error) {
      this.#host.release(key, token, clock.now() + ttlMs).catch(() => false);
      throw error;
    }
  }

  grant(granted: WireLease, validity: Validity): AcquireResult {
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

  /** Releases a grant whose caller no longer waits. */
  releaseGrant(acquired: AcquireResult): void {
    if (acquired.outcome === "granted") {
      const { key, token, validity } = acquired.grant;
      this.#host.release(key, token, validity.until).catch(() => false);
    }
  }

  rejectWith(problem: WireProblem): AcquireResult {
    const error = errorOf(problem, this.#request.key);
    if (error instanceof WaitTimeoutError) {
      return { outcome: "held", holder: error.holder, position: error.position };
    }
    throw error;
  }

  #handleReply({ status, body, sent }: HttpResponse): AcquireResult {
    if (status === 200 || status === 201) {
      const granted = leaseOf(status, body);
      return this.grant(granted, validityOf(granted, sent));
    }
    return this.rejectWith(problemOf({ status, body }));
  }
}

/** After the loss of an unconfirmed claim the waiter enqueues again. */
function retryableIfLost(error: Error): Error {
  return isLockError(error, "lease-lost")
    ? new EngineError("The grant had expired before it was confirmed", { outcome: "none", retryable: true })
    : error;
}
