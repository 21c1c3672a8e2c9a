/** A request in the model. */
export interface ModelRequest {
  readonly id: number;
  weight: number;
  readonly ttlMs: number;
  /** When to stop waiting. Null for a try. */
  readonly deadline: number | null;
}

interface ModelHolder {
  readonly request: ModelRequest;
  /** When the grant expires. `Infinity` with renewal. */
  dueAt: number;
}

/** The specification of a shared lock as a simple model: holders with weights, a limit, and one queue. */
export class SharedLockModel {
  limit: number;
  now: number;
  readonly #modelHolders: ModelHolder[] = [];
  readonly #queue: ModelRequest[] = [];

  constructor(limit: number, now: number) {
    this.limit = limit;
    this.now = now;
  }

  get holders(): number[] {
    return this.#modelHolders.map(({ request }) => request.id).sort((a, b) => a - b);
  }

  get waiters(): number[] {
    return this.#queue.map(({ id }) => id);
  }

  request(request: ModelRequest): void {
    this.#queue.push(request);
    this.#grantNext();
    const stillWaits = this.#queue.includes(request);
    if (stillWaits && request.deadline === null) {
      this.dequeue(request.id);
    }
  }

  /** Ends the wait or the grant of a request. */
  dequeue(id: number): void {
    this.#remove(id);
    this.#grantNext();
  }

  dequeueAll(ids: readonly number[]): void {
    for (const id of ids) {
      this.#remove(id);
    }
    this.#grantNext();
  }

  extend(id: number, ttlMs: number): void {
    const held = this.#modelHolders.find(({ request }) => request.id === id);
    if (held) {
      held.dueAt = Math.max(held.dueAt, this.now + ttlMs);
    }
  }

  setWeight(id: number, weight: number): void {
    for (const { request } of this.#modelHolders) {
      request.weight = request.id === id ? weight : request.weight;
    }
    this.#grantNext();
  }

  setLimit(limit: number): void {
    this.limit = limit;
    this.#grantNext();
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.#nextEvent(); next <= end; next = this.#nextEvent()) {
      this.now = next;
      const expired = [
        ...this.#modelHolders.filter(({ dueAt }) => dueAt <= next).map(({ request }) => request.id),
        ...this.#queue.filter(({ deadline }) => deadline !== null && deadline <= next).map(({ id }) => id),
      ];
      this.dequeueAll(expired);
    }
    this.now = end;
  }

  #nextEvent(): number {
    const dues = this.#modelHolders.map(({ dueAt }) => dueAt);
    const deadlines = this.#queue.map(({ deadline }) => deadline ?? Infinity);
    return Math.min(Infinity, ...dues, ...deadlines);
  }

  #remove(id: number): void {
    const held = this.#modelHolders.findIndex(({ request }) => request.id === id);
    const waiting = this.#queue.findIndex((request) => request.id === id);
    if (held >= 0) {
      this.#modelHolders.splice(held, 1);
    }
    if (waiting >= 0) {
      this.#queue.splice(waiting, 1);
    }
  }

  /** Grants in order of arrival, and never skips the first waiter. A request above the limit is refused. */
  #grantNext(): void {
    for (let [first] = this.#queue; first; [first] = this.#queue) {
      const used = this.#modelHolders.reduce((sum, { request }) => sum + request.weight, 0);
      const isPossible = first.weight <= this.limit;
      if (isPossible && used + first.weight > this.limit) {
        return;
      }
      this.#queue.shift();
      if (isPossible) {
        this.#modelHolders.push({ request: first, dueAt: this.now + first.ttlMs });
      }
    }
  }
}
