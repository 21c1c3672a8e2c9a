/** One request that has no result yet. */
export interface WaitingAcquire {
  readonly request: { readonly key: string };
  /** The engine's number of its queue entry; undefined: none is known. */
  readonly ticket: string | undefined;
  lockMayBeFree(): void;
  cancel(reason: unknown): void;
}

/** The requests of one driver that have no result yet, in the order of their arrival. */
export class WaitingAcquires {
  readonly #byKey = new Map<string, Set<WaitingAcquire>>();
  readonly #byTicket = new Map<string, WaitingAcquire>();

  add(acquire: WaitingAcquire): void {
    const { key } = acquire.request;
    const acquires = this.#byKey.get(key) ?? new Set();
    acquires.add(acquire);
    this.#byKey.set(key, acquires);
  }

  queued(acquire: WaitingAcquire, ticket: string): void {
    this.#byTicket.set(ticket, acquire);
  }

  remove(acquire: WaitingAcquire): void {
    const { key } = acquire.request;
    const acquires = this.#byKey.get(key);
    acquires?.delete(acquire);
    if (acquires?.size === 0) {
      this.#byKey.delete(key);
    }
    if (acquire.ticket !== undefined) {
      this.#byTicket.delete(acquire.ticket);
    }
  }

  /** Wakes the first waiter of this process, which needs no notification of an end that this process caused. */
  wakeNext(key: string): void {
    this.#first(key)?.lockMayBeFree();
  }

  /** Whether the request is the first of this process in the queue of its key. */
  isFirst(acquire: WaitingAcquire): boolean {
    return this.#first(acquire.request.key) === acquire;
  }

  wakeTicket(ticket: string): void {
    this.#byTicket.get(ticket)?.lockMayBeFree();
  }

  wakeAll(): void {
    for (const acquires of this.#byKey.values()) {
      for (const acquire of acquires) {
        acquire.lockMayBeFree();
      }
    }
  }

  cancelAll(reasonOf: (key: string) => unknown): void {
    for (const [key, acquires] of this.#byKey) {
      for (const acquire of acquires) {
        acquire.cancel(reasonOf(key));
      }
    }
  }

  #first(key: string): WaitingAcquire | undefined {
    for (const acquire of this.#byKey.get(key) ?? []) {
      if (acquire.ticket !== undefined) {
        return acquire;
      }
    }
    return undefined;
  }
}
