import type { AcquireOptions, Election, Lease, Lockable } from "holdfast";

import { allReaders } from "./lock-mode.ts";
import type { Client } from "../run/client.ts";
import type { Use } from "./schedule.ts";

type Options = AcquireOptions & { readonly permits?: number; readonly session?: string };

/** The lock of a use, and the options of its kind. */
export interface AcquireSpec {
  readonly lockable: Pick<Lockable<Options>, "acquire" | "tryAcquire" | "withLock" | "tryWithLock">;
  /** Options beside those that all kinds of lock have. */
  readonly options: Pick<Options, "permits" | "session">;
}

/** Creates the lock of each kind for callers, and releases its leases. */
export class AcquireSpecs {
  readonly #elections = new WeakMap<Lease, Election>();

  /** @param limit the limit that callers name for a semaphore */
  specFor({ locks }: Client, { key, mode }: Use, limit: number): AcquireSpec {
    switch (mode?.kind) {
      case undefined:
        return { lockable: locks.mutex(key), options: {} };
      case "reader":
        return { lockable: locks.readWrite(key).read, options: {} };
      case "writer":
        return { lockable: locks.readWrite(key).write, options: {} };
      case "permits":
        return { lockable: locks.semaphore(key, { limit }), options: { permits: mode.permits } };
      case "several":
        return { lockable: locks.all(mode.keys), options: {} };
      case "nested":
        return {
          lockable: locks.reentrant(key),
          options: mode.session === undefined ? {} : { session: mode.session },
        };
      case "candidate":
        return { lockable: this.#candidate(locks.election(key)), options: {} };
    }
  }

  isLeadership(lease: Lease): boolean {
    return this.#elections.has(lease);
  }

  /** A leader resigns. All other holders release their lease. */
  release(lease: Lease): Promise<boolean> {
    const election = this.#elections.get(lease);
    return election ? election.resign() : lease.release();
  }

  #candidate(election: Election): AcquireSpec["lockable"] {
    const campaign = async (options?: Options): Promise<Lease> => {
      const term = await election.campaign(options);
      this.#elections.set(term, election);
      return term;
    };
    const none = (): never => {
      throw new Error("A candidate can only wait until it leads, use acquire");
    };
    return { acquire: campaign, tryAcquire: none, withLock: none, tryWithLock: none };
  }
}

/** The use with at most `limit` permits. The `attemptId` names the number of permits, so that this number changes too. */
export function withinLimit(use: Use, limit: number): Use {
  if (use.mode?.kind !== "permits" || use.mode.permits <= limit || limit >= allReaders) {
    return use;
  }
  const attemptId = use.attemptId?.replace(/\d+$/, String(limit));
  return { ...use, mode: { ...use.mode, permits: limit }, ...(attemptId === undefined ? {} : { attemptId }) };
}
