import type { Clock } from "../../../runtime/clock.ts";
import type {
  AcquireResult,
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  LatchEngine,
  PendingAcquire,
  PendingRequeue,
  MultiAcquired,
  VerifyResult,
} from "../../../driver.ts";
import { EngineError } from "../../../errors.ts";
import { jittered, type Random } from "../../../runtime/random.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../../lock-state.ts";
import { engineExpiry, remainingValidityMs, validFrom } from "../../../validity.ts";
import { pause } from "../../../runtime/timeout.ts";
import { ReplicaAcks } from "./replica-acks.ts";
import type { Connection } from "../clients/connection.ts";
import { engineError, expiredError, isTransient, outcomeOf } from "../server/errors.ts";
import { KeySpace } from "../protocol/keys.ts";
import type { OneServerSettings } from "../options.ts";
import { encodeMetadata, lossReasonOf } from "../protocol/metadata.ts";

/** The driver of the primary, which knows nothing of replicas. */
export interface PrimaryDriver extends Driver {
  readonly latches: LatchEngine;
  canAcquireMany(keys: readonly string[]): boolean;
  acquireMany(requests: readonly AcquireRequest[]): Promise<MultiAcquired>;
}

const pauseMs = 200;

/**
 * Nobody is told of a grant, and no extension counts, before so many replicas have it. A grant that they do not acknowledge in time
 * is rolled back; who waits for it tries again until its deadline. A hand-over in memory writes nothing, so it needs no
 * acknowledgement: it passes on a grant that they have.
 */
export class ReplicatedDriver implements Required<Driver> {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly acks: ReplicaAcks;
  readonly latches: LatchEngine;
  readonly #primary: PrimaryDriver;
  readonly #keySpace: KeySpace;
  readonly #rollingBack = new Set<Promise<boolean>>();
  readonly #listeners = new Set<DriverListener>();

  constructor(primary: PrimaryDriver, connection: Connection, settings: OneServerSettings) {
    this.#primary = primary;
    this.clock = primary.clock;
    this.random = primary.random;
    this.capabilities = primary.capabilities;
    this.latches = primary.latches;
    this.acks = new ReplicaAcks(connection, settings, () => {
      for (const listener of this.#listeners) {
        listener.engineRecovered();
      }
    });
    this.#keySpace = new KeySpace(connection.keyPrefix, settings.prefix);
  }

  acquire(request: AcquireRequest): PendingAcquire {
    return new ReplicatedRequest(this, request, this.#primary.acquire(request));
  }

  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const requeued = this.#primary.requeue(previous, request);
    const pending = new ReplicatedRequest(this, request, requeued);
    return {
      result: pending.result,
      released: requeued.released,
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async acquireMany(requests: readonly AcquireRequest[]): Promise<MultiAcquired> {
    const result = await this.#primary.acquireMany(requests);
    if (result.outcome === "held") {
      return result;
    }
    const { grants } = result;
    const confirmed = await Promise.allSettled(
      grants.map((grant, index) => this.confirm(grant, requests[index] as AcquireRequest)),
    );
    const failure = confirmed.find((one) => one.status === "rejected");
    if (failure) {
      const rolledBack = grants.map((grant) => this.rollBack(grant));
      throw failureAfter(failure.reason, requests[0]?.key, (await Promise.all(rolledBack)).every(Boolean));
    }
    return {
      outcome: "granted",
      grants: confirmed.map((one) => (one as PromiseFulfilledResult<Grant>).value),
    };
  }

  async extend({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    try {
      const keys = this.#keySpace.keysOf(key);
      const sentAt = { key, keys, token, fencingToken, ttlMs, metadata: encodeMetadata(info) };
      const reply = await this.acks.extend(sentAt);
      return Number(reply.value) === 1
        ? { outcome: "renewed", validity: validFrom(reply.sent, ttlMs) }
        : { outcome: "lost", reason: lossReasonOf(reply.value) };
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  // What requests need.

  /** The grant as the replicas have it. Rejects with an `EngineError` where too few have, or where it is gone. */
  async confirm(grant: Grant, { ttlMs }: AcquireRequest): Promise<Grant> {
    const { key, token, fencingToken, validity } = grant;
    const keys = this.#keySpace.keysOf(key);
    validity.engineUntil = Math.max(validity.engineUntil ?? 0, this.clock.now() + ttlMs);
    const reply = await this.acks.extend({ key, keys, token, fencingToken, ttlMs, metadata: "" });
    const confirmed = { ...validFrom(reply.sent, ttlMs), engineUntil: engineExpiry(validity) };
    if (Number(reply.value) !== 1 || remainingValidityMs(confirmed, this.clock) <= 0) {
      throw expiredError();
    }
    return { ...grant, validity: confirmed, isClaim: false };
  }

  /** @returns whether the primary has said that it is gone; else that goes on in the background */
  rollBack({ key, token, validity }: Grant): Promise<boolean> {
    const release = this.#primary.release(key, token, engineExpiry(validity));
    const rolledBack = release.then(
      () => true,
      () => false,
    );
    this.#rollingBack.add(rolledBack);
    void rolledBack.then(() => this.#rollingBack.delete(rolledBack));
    return rolledBack;
  }

  engineRecovered(request: AcquireRequest): PendingAcquire {
    return this.#primary.acquire({ ...request, ticket: undefined });
  }

  async close(): Promise<void> {
    await Promise.all(this.#rollingBack); // bounded by the command budget
    await this.#primary.close();
    this.acks.close();
  }

  // What replicas do not matter for.

  setOwner(owner: string): void {
    this.#primary.setOwner(owner);
  }

  checkKey(key: string): void {
    this.#primary.checkKey(key);
  }

  ticket(key: string): number | undefined {
    return this.#primary.ticket(key);
  }

  canAcquireMany(keys: readonly string[]): boolean {
    return this.#primary.canAcquireMany(keys);
  }

  verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    return this.#primary.verify(key, token, fencingToken);
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    return this.#primary.release(key, token, until);
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.#primary.downgrade(key, token, until);
  }

  setLimit(key: string, limit: number): Promise<void> {
    return this.#primary.setLimit(key, limit);
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    const forget = this.#primary.listen(listener);
    return () => {
      this.#listeners.delete(listener);
      forget();
    };
  }

  inspect(key: string): Promise<LockState> {
    return this.#primary.inspect(key);
  }

  list(query: Parameters<Driver["list"]>[0]): ReturnType<Driver["list"]> {
    return this.#primary.list(query);
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#primary.watch(target, signal);
  }

  breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    return this.#primary.breakGrant(key, fencingToken, reason);
  }

  checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return this.#primary.checkFence(key, fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#primary.nodes();
  }
}

/** One request, of which nobody is told before the replicas have its grant. Who cancels it does not wait for them. */
class ReplicatedRequest implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #driver: ReplicatedDriver;
  readonly #request: AcquireRequest;
  #pending: PendingAcquire;
  /** What the primary has granted and the replicas have not acknowledged yet. */
  #unconfirmed: Grant | undefined;
  readonly #cancelled = new AbortController();
  /** Why there was another try, which may have been left too little time for an answer. */
  #failure: Error | undefined;
  #resolve!: (acquired: AcquireResult) => void;
  #reject!: (reason: unknown) => void;

  constructor(driver: ReplicatedDriver, request: AcquireRequest, pending: PendingAcquire) {
    this.#driver = driver;
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
    void this.#rollBack(); // an extension that is under way does not create the grant again
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
      await pause(
        this.#driver.clock,
        jittered(this.#driver.random, pauseMs, 0.5),
        true,
        this.#cancelled.signal,
      );
      if (!this.#isCancelled) {
        this.#pending = this.#driver.engineRecovered(this.#request);
      }
    }
  }

  /** @returns whether that was the end; false: rolled back, and there is time for another try */
  async #confirm(grant: Grant): Promise<boolean> {
    const { key, deadline } = this.#request;
    const { clock } = this.#driver;
    try {
      if (!this.#isCancelled) {
        const confirmed = await this.#driver.confirm(grant, this.#request);
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
    return this.#rollBack(); // it was cancelled as the grant came
  }

  /** @returns whether the primary has said that the grant is gone */
  async #rollBack(): Promise<boolean> {
    const grant = this.#unconfirmed;
    this.#unconfirmed = undefined;
    return grant !== undefined && (await this.#driver.rollBack(grant));
  }
}

/** What is left behind is known where the primary has said that the grant is gone. */
function failureAfter(failure: unknown, key: string | undefined, isRolledBack: boolean): Error {
  const error = engineError(failure, key, outcomeOf(failure));
  if (!(error instanceof EngineError) || !isRolledBack) {
    return error;
  }
  const { message, retryable, cause } = error;
  const code = error.code === "replicas-not-reached" ? error.code : "engine-unavailable";
  return new EngineError(message, { key, outcome: "none", retryable, cause, code });
}
