/** A request as the model knows it. */
export interface Wish {
  readonly id: number;
  weight: number;
  readonly ttlMs: number;
  /** When to stop waiting; null: only a try. */
  readonly deadline: number | null;
}

interface Held {
  readonly wish: Wish;
  /** When the engine forgets it; `Infinity`: it is renewed. */
  dueAt: number;
}

/** What a lock that several may hold is said to be: holders with weights, a limit, and one queue. In plain words, to be compared with. */
export class ShareModel {
  limit: number;
  now: number;
  readonly #held: Held[] = [];
  readonly #queue: Wish[] = [];

  constructor(limit: number, now: number) {
    this.limit = limit;
    this.now = now;
  }

  get holders(): number[] {
    return this.#held.map(({ wish }) => wish.id).sort((a, b) => a - b);
  }

  get waiters(): number[] {
    return this.#queue.map(({ id }) => id);
  }

  ask(wish: Wish): void {
    this.#queue.push(wish);
    this.#serve();
    const stillWaits = this.#queue.includes(wish);
    if (stillWaits && wish.deadline === null) {
      this.leave(wish.id);
    }
  }

  /** Gives up waiting, or what it holds. */
  leave(id: number): void {
    this.#drop(id);
    this.#serve();
  }

  leaveAll(ids: readonly number[]): void {
    for (const id of ids) {
      this.#drop(id);
    }
    this.#serve();
  }

  extend(id: number, ttlMs: number): void {
    const held = this.#held.find(({ wish }) => wish.id === id);
    if (held) {
      held.dueAt = Math.max(held.dueAt, this.now + ttlMs);
    }
  }

  reweigh(id: number, weight: number): void {
    for (const { wish } of this.#held) {
      wish.weight = wish.id === id ? weight : wish.weight;
    }
    this.#serve();
  }

  setLimit(limit: number): void {
    this.limit = limit;
    this.#serve();
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.#nextEvent(); next <= end; next = this.#nextEvent()) {
      this.now = next;
      const over = [
        ...this.#held.filter(({ dueAt }) => dueAt <= next).map(({ wish }) => wish.id),
        ...this.#queue.filter(({ deadline }) => deadline !== null && deadline <= next).map(({ id }) => id),
      ];
      this.leaveAll(over);
    }
    this.now = end;
  }

  #nextEvent(): number {
    const dues = this.#held.map(({ dueAt }) => dueAt);
    const deadlines = this.#queue.map(({ deadline }) => deadline ?? Infinity);
    return Math.min(Infinity, ...dues, ...deadlines);
  }

  #drop(id: number): void {
    const held = this.#held.findIndex(({ wish }) => wish.id === id);
    const waiting = this.#queue.findIndex((wish) => wish.id === id);
    if (held >= 0) {
      this.#held.splice(held, 1);
    }
    if (waiting >= 0) {
      this.#queue.splice(waiting, 1);
    }
  }

  /** In order of arrival, and nobody passes the first. Who wants more than there is at all is sent away. */
  #serve(): void {
    for (let [first] = this.#queue; first; [first] = this.#queue) {
      const used = this.#held.reduce((sum, { wish }) => sum + wish.weight, 0);
      const isPossible = first.weight <= this.limit;
      if (isPossible && used + first.weight > this.limit) {
        return;
      }
      this.#queue.shift();
      if (isPossible) {
        this.#held.push({ wish: first, dueAt: this.now + first.ttlMs });
      }
    }
  }
}
