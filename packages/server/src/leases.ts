import {
  EngineError,
  isLockError,
  LeaseLostError,
  type Lease,
  type HolderInfo,
  type LossReason,
} from "holdfast";
import type { LeaseParts, WireLease, WireMode } from "holdfast/http";

import type { Engine, Extension, Verification } from "./engine.ts";
import type { HeldKeys } from "./held-keys.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Metrics } from "./meter.ts";
import { ServiceError } from "./refusal.ts";
import {
  releaseAll,
  type AcquireCommand,
  type Requester,
  type AcquiredLeases,
  type AcquireLease,
} from "./acquire-leases.ts";

/** A lease needs no renewal sooner than a tenth of its TTL after the last one, within these bounds, ms, and a fifth of a short TTL. */
const [minRenewalMs, maxRenewalMs] = [500, 5_000] as const;

/** The public fields of a lease that this instance holds for a client. */
export type DescribedLease = Omit<WireLease, "leaseId" | "queuedMs" | "ttlMs">;

/** The leases of clients. A lease id has all data of its lease, so every instance of the service can renew and release that lease. */
export class Leases {
  readonly #engine: Engine;
  readonly #acquireLease: AcquireLease;
  readonly #metrics: Metrics;
  readonly #ids: LeaseIds;
  readonly #held: HeldKeys;

  constructor(engine: Engine, acquireLease: AcquireLease, metrics: Metrics, ids: LeaseIds, held: HeldKeys) {
    this.#held = held;
    this.#ids = ids;
    this.#engine = engine;
    this.#acquireLease = acquireLease;
    this.#metrics = metrics;
  }

  /** Acquires a lease that the client renews and releases. Rejects like {@link AcquireLease.run}. */
  async acquire(command: AcquireCommand, requester: Requester): Promise<WireLease> {
    const startedAt = performance.now();
    const { leases, ttlMs, queuedMs, uncount } = await this.acquireLeases(command, requester, false);
    const kind = kindOf(command.mode);
    const kinds = leases.map(() => kind);
    try {
      leases.forEach((lease) => lease.throwIfLost());
      return this.#respond(leases, { ttlMs, begun: startedAt, queuedMs, kinds });
    } catch (error) {
      uncount();
      await releaseAll(leases);
      throw isLockError(error, "lease-lost") ? repliedTooLate(error) : error;
    }
  }

  /**
   * Whether a renewal of the lease would be a waste, because its last renewal was a moment ago. Clients renew after a third of the TTL.
   */
  isRenewedEarly({ grants, ttlMs }: LeaseParts): boolean {
    const intervalMs = Math.min(Math.max(ttlMs / 10, minRenewalMs), maxRenewalMs, ttlMs / 5);
    return grants.some((grant) => (this.#metrics.sinceRenewalMs(grant) ?? Infinity) < intervalMs);
  }

  /** Whether this instance knows that the lease is held. */
  isKnown({ grants }: LeaseParts): boolean {
    return grants.every((grant) => this.#metrics.isKnown(grant));
  }

  /** @param renew whether this instance holds and renews the leases */
  async acquireLeases(command: AcquireCommand, requester: Requester, renew: boolean): Promise<CountedLeases> {
    const { keys, quota, ttlMs } = command;
    this.#checkTtl(ttlMs);
    await this.#held.check(quota, keys.length);
    const reported = this.#metrics.acquiring(command);
    try {
      const acquired = await this.#acquireLease.run(
        command,
        withReport(requester, () => reported.queued()),
        renew,
      );
      const uncount = await this.#count(quota, acquired.leases);
      reported.granted();
      return { ...acquired, uncount };
    } catch (error) {
      reported.failed(error);
      throw isLockError(error, "lease-lost") ? repliedTooLate(error) : error;
    }
  }

  /** Counts the keys of a lease. Others may have been granted since the check, and the lease is then released. */
  async #count(quota: string, leases: readonly Lease[]): Promise<() => void> {
    try {
      this.#held.begin(quota, leases);
    } catch (error) {
      await releaseAll(leases);
      throw error;
    }
    const held = leases.map(({ key, fencingToken }) => ({ key, fencingToken }));
    return () => held.forEach((one) => this.#held.ended(one));
  }

  describe(leases: readonly Lease[]): DescribedLease {
    const tokens = leases.map(({ key, fencingToken }) => [key, fencingToken.toString()] as const);
    const remainingMs = Math.min(...leases.map((lease) => lease.remainingMs()));
    return {
      key: tokens[0]?.[0] ?? "",
      keys: tokens.map(([key]) => key),
      fencingToken: tokens[0]?.[1] ?? "",
      fencingTokens: Object.fromEntries(tokens),
      validMs: inMicros(remainingMs),
      expiresAt: new Date(Date.now() + remainingMs).toISOString(),
      guarantee: this.#engine.guarantee,
    };
  }

  /**
   * Reads a lease, and never extends it. If the engine does not know its remaining time, `validMs` is 0.
   * @throws {LeaseLostError}
   */
  async findLease(parts: LeaseParts): Promise<WireLease> {
    const startedAt = performance.now();
    const times = await Promise.all(
      parts.grants.map(async (grant) => {
        const { key, token, fencingToken } = grant;
        this.#engine.locks.mutex(key); // throws for an invalid key
        const verified = await this.#engine.driver.verify(key, token, BigInt(fencingToken));
        const elapsedMs = performance.now() - startedAt;
        const leftMs = this.#remainingMs(grant, verified);
        if (leftMs > 0) {
          return { leftMs, validMs: elapsedMs + leftMs };
        } else if (verified.outcome === "valid" && verified.hasUnknownEnd === true) {
          return { leftMs: 0, validMs: 0 };
        }
        throw new LeaseLostError(key, "expired", this.#engine.driver.clock.wall());
      }),
    );
    const leftMs = Math.min(...times.map((one) => one.leftMs));
    const validMs = Math.min(...times.map((one) => one.validMs));
    return this.#wire(parts, { leftMs, validMs, queuedMs: 0 });
  }

  /**
   * Extends by the driver, because an adopted lease would overwrite the stored metadata. From then on the keys count for the principal,
   * also if another instance granted them.
   * @throws {LeaseLostError}
   */
  async renew(parts: LeaseParts, ttlMs: number, quota: string, metadata?: HolderInfo): Promise<WireLease> {
    const startedAt = performance.now();
    this.#checkTtl(ttlMs);
    const times = await Promise.all(
      parts.grants.map(async (grant) => {
        const { key, token, fencingToken } = grant;
        this.#engine.locks.mutex(key); // throws for an invalid key
        const number = BigInt(fencingToken);
        const info = metadata && { ...metadata, fencingToken: number };
        const asked = { key, token, fencingToken: number, ttlMs, info };
        const extension = await this.#engine.driver.extend(asked);
        const elapsedMs = performance.now() - startedAt;
        this.#metrics.renewed(grant, ttlMs, extension, elapsedMs);
        const leftMs = this.#remainingMs(grant, extension);
        this.#held.renewed(quota, [this.#metrics.leaseHeld(grant, ttlMs, leftMs)]); // also if another key of the lease is lost
        return { elapsedMs, leftMs };
      }),
    );
    const validMs = Math.min(...times.map(({ elapsedMs, leftMs }) => elapsedMs + leftMs));
    const leftMs = Math.min(...times.map((one) => one.leftMs));
    return this.#wire({ ttlMs, grants: parts.grants }, { leftMs, validMs, queuedMs: 0 });
  }

  /** @returns whether every key was still held */
  async release({ ttlMs, grants }: LeaseParts): Promise<boolean> {
    const releases = await Promise.all(
      grants.map(async (grant) => {
        const loss = await this.#release(grant, ttlMs);
        this.#metrics.released(grant, loss);
        return loss === undefined;
      }),
    );
    return releases.every(Boolean);
  }

  /** Releases a lease that its client never received. Retries until the engine has replied or the grant has expired. */
  releaseUndelivered({ ttlMs, grants }: LeaseParts): void {
    const { driver } = this.#engine;
    for (const grant of grants) {
      driver.release(grant.key, grant.token, driver.clock.now() + ttlMs).then(
        (wasHeld) => {
          this.#metrics.released(grant, wasHeld ? undefined : "stolen");
        },
        () => {
          this.#metrics.notReleased(grant);
        },
      );
    }
  }

  /** Downgrades a write lease to a read lease. */
  async downgrade({ ttlMs, grants }: LeaseParts): Promise<boolean> {
    const { driver } = this.#engine;
    const [grant] = grants;
    if (grants.length !== 1 || !grant) {
      throw new ServiceError("invalid", "Expected a write lease, got a lease of several keys");
    }
    return driver.downgrade(grant.key, grant.token, driver.clock.now() + ttlMs);
  }

  /** @returns why the grant had ended before; undefined: it was held until the release */
  async #release(grant: LeaseParts["grants"][number], ttlMs: number): Promise<LossReason | undefined> {
    try {
      if (!(await (await this.#adopt(grant, ttlMs)).release())) {
        return "stolen";
      }
      this.#engine.ended(grant.token, "released");
      return undefined;
    } catch (error) {
      if (isLockError(error, "lease-lost")) {
        return error.reason;
      }
      this.#metrics.notReleased(grant);
      throw error;
    }
  }

  /**
   * Transfers the lease to its client, so no state stays here. The elapsed time is read before the remaining time, because a pause
   * between the two must not lengthen the reported validity.
   */
  #respond(leases: readonly Lease[], { ttlMs, begun: startedAt, queuedMs, kinds }: LeaseReply): WireLease {
    const elapsedMs = performance.now() - startedAt;
    const leftMs = Math.min(...leases.map((lease) => lease.remainingMs()));
    const grants = leases.map((lease, index) => {
      const { key, token, fencingToken } = lease.transfer();
      return { key, token, fencingToken, kind: kinds[index] };
    });
    return this.#wire({ ttlMs, grants }, { leftMs, validMs: leftMs + elapsedMs - queuedMs, queuedMs });
  }

  /** The remaining time counts from the request's receipt, without the wait. So the client can count from the sending of its request. */
  #wire(
    parts: LeaseParts,
    { leftMs, validMs, queuedMs }: { leftMs: number; validMs: number; queuedMs: number },
  ): WireLease {
    const [first] = parts.grants;
    for (const grant of parts.grants) {
      this.#metrics.leaseHeld(grant, parts.ttlMs, leftMs > 0 ? leftMs : parts.ttlMs);
    }
    return {
      leaseId: this.#ids.of(parts),
      key: first?.key ?? "",
      keys: parts.grants.map(({ key }) => key),
      fencingToken: first?.fencingToken ?? "",
      fencingTokens: Object.fromEntries(parts.grants.map(({ key, fencingToken }) => [key, fencingToken])),
      ttlMs: parts.ttlMs,
      validMs: inMicros(validMs),
      expiresAt: new Date(Date.now() + leftMs).toISOString(),
      queuedMs: inMicros(queuedMs),
      guarantee: this.#engine.guarantee,
    };
  }

  /** @throws {LeaseLostError} */
  #remainingMs({ key, token }: LeaseParts["grants"][number], result: Extension | Verification): number {
    const { clock } = this.#engine.driver;
    switch (result.outcome) {
      case "valid":
      case "extended": {
        const { until, untilWall } = result.validity;
        return Math.max(0, Math.min(until - clock.now(), untilWall - clock.wall()));
      }
      case "lost":
        throw new LeaseLostError(key, this.#engine.lossOf(token) ?? result.reason, clock.wall());
      case "unknown":
        throw result.error;
    }
  }

  async #adopt({ key, token, fencingToken }: LeaseParts["grants"][number], ttlMs: number): Promise<Lease> {
    try {
      return await this.#engine.locks.adopt(
        { version: 1, key, token, fencingToken, owner: "service", ttlMs },
        { renew: false },
      );
    } catch (error) {
      const reason = this.#engine.lossOf(token);
      throw isLockError(error, "lease-lost") && reason
        ? new LeaseLostError(key, reason, error.lostAt)
        : error;
    }
  }

  #checkTtl(ttlMs: number): void {
    const { maxTtlMs } = this.#engine.driver.capabilities;
    if (ttlMs > maxTtlMs) {
      throw new ServiceError("invalid", `Expected \`ttlMs\` to be ${maxTtlMs} at the most, got ${ttlMs}`);
    }
  }
}

interface LeaseReply {
  readonly ttlMs: number;
  /** The receipt of the request. */
  readonly begun: number;
  readonly queuedMs: number;
  /** Of each grant. */
  readonly kinds: readonly LeaseParts["grants"][number]["kind"][];
}

interface CountedLeases extends AcquiredLeases {
  /** The leases no longer count for their principal. */
  readonly uncount: () => void;
}

function kindOf(mode: WireMode): LeaseParts["grants"][number]["kind"] {
  return mode === "exclusive" ? undefined : mode === "semaphore" ? mode : "read-write";
}

/** The grant expired before its response. */
function repliedTooLate({ key }: LeaseLostError): EngineError {
  const message = "The grant had expired before its response was sent";
  return new EngineError(message, { key, outcome: "none", retryable: true });
}

/** The requester, whose wait is reported too. */
function withReport(requester: Requester, queued: () => void): Requester {
  return {
    get closed() {
      return requester.closed;
    },
    onQueued: () => {
      queued();
      requester.onQueued();
    },
  };
}

function inMicros(ms: number): number {
  return Math.floor(ms * 1000) / 1000;
}
