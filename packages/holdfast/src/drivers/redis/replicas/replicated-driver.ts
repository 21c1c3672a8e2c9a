import type {
  AcquireRequest,
  DriverListener,
  ExtendRequest,
  Grant,
  PendingAcquire,
  PendingRequeue,
  VerifyResult,
} from "../../../driver.ts";
import { engineExpiry, remainingValidityMs, validFrom } from "../../../validity.ts";
import { ReplicaAcks } from "./replica-acks.ts";
import { ReplicatedRequest } from "./replicated-request.ts";
import type { Connection } from "../clients/connection.ts";
import { expiredError } from "../server/errors.ts";
import { KeySpace } from "../protocol/keys.ts";
import type { OneServerSettings } from "../options.ts";
import { encodeMetadata, lossReasonOf } from "../protocol/metadata.ts";
import type { Reply } from "../protocol/operation.ts";
import { RedisDriver } from "../single/driver.ts";
import type { CreateDirectory } from "../single/request-registry.ts";

/**
 * Locks on one server with replicas. A grant is reported, and an extension counts, when `minReplicas` replicas have acknowledged it.
 * Otherwise the grant is rolled back, and its request is repeated until the deadline.
 *
 * A hand-over in memory writes nothing, so it needs no acknowledgement: the replicas have its grant already.
 */
export class ReplicatedDriver extends RedisDriver {
  readonly #acks: ReplicaAcks;
  readonly #ackKeys: KeySpace;
  readonly #rollingBack = new Set<Promise<boolean>>();
  readonly #ackListeners = new Set<DriverListener>();

  constructor(settings: OneServerSettings, connection: Connection, createDirectory: CreateDirectory) {
    super(settings, connection.keyPrefix, createDirectory);
    this.#ackKeys = new KeySpace(connection.keyPrefix, settings.prefix);
    this.#acks = new ReplicaAcks(connection, settings, () => {
      for (const listener of this.#ackListeners) {
        listener.engineRecovered();
      }
    });
  }

  override acquire(request: AcquireRequest): PendingAcquire {
    return new ReplicatedRequest(this, request, super.acquire(request));
  }

  override requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const requeued = super.requeue(previous, request);
    const pending = new ReplicatedRequest(this, request, requeued);
    return {
      result: pending.result,
      released: requeued.released,
      cancel: (reason) => pending.cancel(reason),
    };
  }

  protected override sendExtension({ key, info, ...extension }: ExtendRequest): Promise<Reply> {
    return this.#acks.extend({
      ...extension,
      key,
      keys: this.#ackKeys.keysOf(key),
      metadata: encodeMetadata(info),
    });
  }

  /**
   * The validity is one that the replicas have acknowledged. The primary's TTL may come from an extension that no replica has, so the grant is
   * extended by its remaining validity. Rejects with an `EngineError` if too few replicas acknowledge the extension.
   *
   * Without a fencing token the caller has a lease, and asks only for its loss. Such a call does not wait for replicas, because the wait
   * would delay the renewals after a failover.
   */
  override async verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    const verified = await super.verify(key, token, fencingToken);
    if (verified.outcome === "lost" || fencingToken === undefined) {
      return verified;
    }
    const ttlMs = Math.floor(remainingValidityMs(verified.validity, this.clock));
    if (ttlMs < 1) {
      return verified;
    }
    const keys = this.#ackKeys.keysOf(key);
    const { value, sent } = await this.#acks.extend({ key, keys, token, fencingToken, ttlMs, metadata: "" });
    return Number(value) === 1
      ? { outcome: "valid", validity: validFrom(sent, ttlMs) }
      : { outcome: "lost", reason: lossReasonOf(value) };
  }

  // The host of the requests.

  /** The grant as the replicas have acknowledged it. Rejects with an `EngineError` if too few acknowledge it, or if it has expired. */
  async confirm(grant: Grant, { ttlMs }: AcquireRequest): Promise<Grant> {
    const { key, token, fencingToken, validity } = grant;
    const keys = this.#ackKeys.keysOf(key);
    validity.engineUntil = Math.max(validity.engineUntil ?? 0, this.clock.now() + ttlMs);
    const reply = await this.#acks.extend({ key, keys, token, fencingToken, ttlMs, metadata: "" });
    const confirmed = { ...validFrom(reply.sent, ttlMs), engineUntil: engineExpiry(validity) };
    if (Number(reply.value) !== 1 || remainingValidityMs(confirmed, this.clock) <= 0) {
      throw expiredError();
    }
    return { ...grant, validity: confirmed, isClaim: false };
  }

  /** @returns whether the primary has confirmed the release. If not, the release continues in the background. */
  rollBack({ key, token, validity }: Grant): Promise<boolean> {
    const release = this.release(key, token, engineExpiry(validity));
    const rolledBack = release.then(
      () => true,
      () => false,
    );
    this.#rollingBack.add(rolledBack);
    void rolledBack.then(() => this.#rollingBack.delete(rolledBack));
    return rolledBack;
  }

  acquireAgain(request: AcquireRequest): PendingAcquire {
    return super.acquire({ ...request, ticket: undefined });
  }

  override listen(listener: DriverListener): () => void {
    this.#ackListeners.add(listener);
    const stopListening = super.listen(listener);
    return () => {
      this.#ackListeners.delete(listener);
      stopListening();
    };
  }

  override async close(): Promise<void> {
    await Promise.all(this.#rollingBack); // bounded by `commandTimeoutMs`
    await super.close();
    this.#acks.close();
  }
}
