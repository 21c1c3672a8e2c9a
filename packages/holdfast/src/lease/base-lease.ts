import type { Lease } from "./lease.ts";

type LeaseJson = ReturnType<Lease["toJSON"]>;

const keepsAlive = Symbol("holdfast.lease");

/** A signal that keeps its lease alive as long as somebody has it. */
export function lossControllerOf(lease: Lease): AbortController {
  const controller = new AbortController();
  Object.defineProperty(controller.signal, keepsAlive, { value: lease });
  return controller;
}

/** What every lease does in the same way. */
export class BaseLease {
  get isInForce(): boolean {
    return (this as unknown as Lease).remainingMs() > 0;
  }

  toJSON(this: Lease): LeaseJson {
    const { key, keys, owner } = this;
    return { key, keys, owner, fencingToken: this.fencingToken.toString(), remainingMs: this.remainingMs() };
  }

  async [Symbol.asyncDispose](this: Lease): Promise<void> {
    // The engine goes on releasing in the background; a scope that ends must not fail for it.
    await this.release().catch(() => false);
  }
}
