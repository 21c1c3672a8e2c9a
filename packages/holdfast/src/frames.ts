import { AsyncLocalStorage } from "node:async_hooks";

import { LockError } from "./errors.ts";
import type { HeldLease } from "./lease.ts";

interface Frame {
  readonly lease: HeldLease;
  readonly outer: Frame | undefined;
}

/** Knows inside which `withLock` a call is made, so that a wait for oneself is refused at once. */
export class Frames {
  readonly #storage = new AsyncLocalStorage<Frame>();

  run<T>(lease: HeldLease, work: () => T): T {
    return this.#storage.run({ lease, outer: this.#storage.getStore() }, work);
  }

  /** @throws {LockError} `self-deadlock` inside a `withLock` that still holds the key */
  refuseWithin(key: string): void {
    for (let frame = this.#storage.getStore(); frame; frame = frame.outer) {
      if (frame.lease.key === key && frame.lease.remainingMs() > 0) {
        const message = `"${key}" is held by the \`withLock\` around this call, which would wait for itself`;
        throw new LockError(message, { code: "self-deadlock", key });
      }
    }
  }
}
