import { AsyncLocalStorage } from "node:async_hooks";

import { LockError } from "../errors.ts";
import type { OwnedLease } from "../lease/lease.ts";

interface Frame {
  /** Whose it is. */
  readonly of: Frames;
  readonly lease: OwnedLease;
  readonly outer: Frame | undefined;
}

/** One for all: Node 20 asks each storage that was ever used at every promise, for as long as the process lives. */
const storage = new AsyncLocalStorage<Frame>();

/** Knows inside which `withLock` a call is made, so that a wait for oneself is refused at once. */
export class Frames {
  run<T>(lease: OwnedLease, work: () => T): T {
    return storage.run({ of: this, lease, outer: storage.getStore() }, work);
  }

  /** The lease of the innermost `withLock` around this call that is such a one. */
  find(isOne: (lease: OwnedLease) => boolean): OwnedLease | undefined {
    for (let frame = storage.getStore(); frame; frame = frame.outer) {
      if (frame.of === this && isOne(frame.lease)) {
        return frame.lease;
      }
    }
    return undefined;
  }

  /** @throws {LockError} `self-deadlock` inside a `withLock` that still holds the key */
  refuseWithin(key: string): void {
    if (this.find((lease) => lease.keys.includes(key) && lease.isInForce)) {
      const message = `"${key}" is held by the \`withLock\` around this call, which would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key });
    }
  }
}
