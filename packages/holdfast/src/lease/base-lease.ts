import { inspectAsJson } from "../runtime/plain-values.ts";
import type { Lease } from "./lease.ts";

type LeaseJson = ReturnType<Lease["toJSON"]>;

const keepsAlive = Symbol("holdfast.lease");

/** The controller of a signal that refers to its lease. While anything refers to the signal, the lease is not garbage. */
export function lossControllerOf(lease: Lease): AbortController {
  const controller = new AbortController();
  Object.defineProperty(controller.signal, keepsAlive, { value: lease });
  return controller;
}

/** The members that all leases share. */
export class BaseLease {
  static {
    inspectAsJson(this.prototype as unknown as Lease, "Lease");
  }

  get isInForce(): boolean {
    return (this as unknown as Lease).remainingMs() > 0;
  }

  toJSON(this: Lease): LeaseJson {
    const { key, keys, owner } = this;
    return { key, keys, owner, fencingToken: this.fencingToken.toString(), remainingMs: this.remainingMs() };
  }

  async [Symbol.asyncDispose](this: Lease): Promise<void> {
    // The engine retries the release in the background, so a failure must not break the scope.
    await this.release().catch(() => false);
  }
}
