import type { AcquireOptions, Election, Lease, Lockable } from "holdfast";

import { whole } from "./lock-mode.ts";
import type { Client } from "../run/client.ts";
import type { Use } from "./schedule.ts";

type Options = AcquireOptions & { readonly permits?: number; readonly session?: string };

/** How a caller asks for what it wants. */
export interface Want {
  readonly lockable: Pick<Lockable<Options>, "acquire" | "tryAcquire" | "withLock" | "tryWithLock">;
  /** What goes with it beside what all kinds know. */
  readonly options: Pick<Options, "permits" | "session">;
}

/** The kinds of lock, as callers ask for them. */
export class Wants {
  readonly #elections = new WeakMap<Lease, Election>();

  /** @param limit what callers take for the limit of a semaphore */
  of({ locks }: Client, { key, as }: Use, limit: number): Want {
    switch (as?.kind) {
      case undefined:
        return { lockable: locks.mutex(key), options: {} };
      case "reader":
        return { lockable: locks.readWrite(key).read, options: {} };
      case "writer":
        return { lockable: locks.readWrite(key).write, options: {} };
      case "permits":
        return { lockable: locks.semaphore(key, { limit }), options: { permits: as.permits } };
      case "several":
        return { lockable: locks.all(as.keys), options: {} };
      case "nested":
        return {
          lockable: locks.reentrant(key),
          options: as.session === undefined ? {} : { session: as.session },
        };
      case "candidate":
        return { lockable: this.#candidate(locks.election(key)), options: {} };
    }
  }

  isTerm(lease: Lease): boolean {
    return this.#elections.has(lease);
  }

  /** A leader resigns; everybody else releases. */
  giveBack(lease: Lease): Promise<boolean> {
    const election = this.#elections.get(lease);
    return election ? election.resign() : lease.release();
  }

  #candidate(election: Election): Want["lockable"] {
    const campaign = async (options?: Options): Promise<Lease> => {
      const term = await election.campaign(options);
      this.#elections.set(term, election);
      return term;
    };
    const none = (): never => {
      throw new Error("A candidate waits until it leads");
    };
    return { acquire: campaign, tryAcquire: none, withLock: none, tryWithLock: none };
  }
}

/** What is asked for where there are no more permits than `limit`; by a named attempt, which says how many, in another one. */
export function within(use: Use, limit: number): Use {
  if (use.as?.kind !== "permits" || use.as.permits <= limit || limit >= whole) {
    return use;
  }
  const attemptId = use.attemptId?.replace(/\d+$/, String(limit));
  return { ...use, as: { ...use.as, permits: limit }, ...(attemptId === undefined ? {} : { attemptId }) };
}
