import type { LeaseFacts } from "../diagnostics.ts";
import type { Grant, LockMode } from "../driver.ts";
import type { Validity } from "../validity.ts";
import type { LeaseHost, LeaseStateOptions } from "./lease-host.ts";
import { leaseFacts } from "./lease-trace.ts";

/** The grant of a lease, and its times and names. */
export abstract class LeaseGrant {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly heldFrom: number; // when this process received the lease, on the scale of `clock.now()`
  endsAt: number;
  isClaim: boolean;
  readonly #host: Pick<LeaseHost<never>, "owner" | "driver" | "instance">;
  readonly #options: LeaseStateOptions;

  protected constructor(
    host: Pick<LeaseHost<never>, "owner" | "driver" | "instance" | "clock">,
    grant: Grant,
    options: LeaseStateOptions,
    fencingToken: bigint,
  ) {
    this.key = grant.key;
    this.grant = grant;
    this.fencingToken = fencingToken;
    this.ttlMs = options.ttlMs;
    this.heldFrom = host.clock.now();
    this.endsAt = this.heldFrom + options.maxHoldMs;
    this.isClaim = grant.isClaim;
    this.#host = host;
    this.#options = options;
  }

  get owner(): string {
    return this.#options.info?.owner ?? this.#host.owner;
  }

  get lockMode(): LockMode | undefined {
    return this.#options.lockMode;
  }

  get validity(): Validity {
    return this.grant.validity;
  }

  get maxTtlMs(): number {
    return this.#host.driver.capabilities.maxTtlMs;
  }

  facts(): LeaseFacts {
    return leaseFacts(this.#host, this, this.#options.isAdopted === true ? null : this.lockMode);
  }
}
