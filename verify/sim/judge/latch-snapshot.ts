import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Clock } from "holdfast";

/** A latch as an engine has it. */
export interface Seen {
  /** Tells it from all others of its key. */
  readonly id: string;
  readonly total: number;
  readonly left: number;
  /** When it ends, by the engine's clock. */
  readonly ends: number;
}

/** Who sees what an engine has under a key. */
export interface Sight {
  /** By the engine's clock, ms. */
  now(): number;
  read(): Seen | undefined;
  /** How many stand there to be told. */
  waiters?(): number;
}

/** What one server keeps, seen from outside. */
export function sightOfServer(server: FakeRedis, clock: Clock, key: string): Sight {
  return {
    now: () => Math.floor(clock.wall()),
    waiters: () => {
      const queue = server.dump(`holdfast:queue:{lock:${key}}`);
      return queue?.type === "zset" ? queue.value.length : 0;
    },
    read: () => {
      const stored = server.dump(`lock:${key}`);
      const fields = new Map(stored?.type === "hash" ? stored.value : []);
      const [id, total, left, ends] = ["born", "latch", "left", "ends"].map((name) => fields.get(name));
      return id === undefined
        ? undefined
        : { id, total: Number(total), left: Number(left), ends: Number(ends) };
    },
  };
}

/** What somebody calls a latch by: it stays with the latch that it met first. */
export interface Caller {
  readonly count: number;
  readonly ttlMs: number;
}

/** What a memory engine has to have, as every call is carried out there at once. */
export class MemorySight implements Sight {
  readonly #clock: Clock;
  readonly #met = new WeakMap<Caller, string>();
  readonly #attempts = new Set<string>();
  #present: Seen | undefined;
  #born = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  read(): Seen | undefined {
    if (this.#present && this.#present.ends <= this.now()) {
      this.#present = undefined;
    }
    return this.#present;
  }

  /** @param attempt that counts down; undefined: it is only looked at */
  touch(caller: Caller, attempt: string | undefined): void {
    const met = this.#met.get(caller);
    if (met !== undefined && met !== this.read()?.id) {
      return;
    }
    const present = this.read() ?? this.#begin(caller);
    this.#met.set(caller, present.id);
    if (attempt !== undefined) {
      this.#attempts.add(attempt);
    }
    this.#present = { ...present, left: Math.max(0, present.total - this.#attempts.size) };
  }

  #begin({ count, ttlMs }: Caller): Seen {
    this.#attempts.clear();
    this.#born += 1;
    return { id: String(this.#born), total: count, left: count, ends: this.now() + ttlMs };
  }
}
