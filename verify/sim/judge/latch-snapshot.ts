import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Clock } from "holdfast";

/** A latch as an engine has it. */
export interface LatchSnapshot {
  /** Tells it from all others of its key. */
  readonly id: string;
  readonly total: number;
  readonly remaining: number;
  /** When it ends, by the engine's clock. */
  readonly endsAt: number;
}

/** Who sees what an engine has under a key. */
export interface LatchObserver {
  /** By the engine's clock, ms. */
  now(): number;
  read(): LatchSnapshot | undefined;
  /** How many stand there to be told. */
  waiters?(): number;
}

/** What one server keeps, seen from outside. */
export function observeServer(server: FakeRedis, clock: Clock, key: string): LatchObserver {
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
        : { id, total: Number(total), remaining: Number(left), endsAt: Number(ends) };
    },
  };
}

/** What somebody calls a latch by: it stays with the latch that it met first. */
export interface Caller {
  readonly count: number;
  readonly ttlMs: number;
}

/** What a memory engine has to have, as every call is carried out there at once. */
export class MemoryLatchObserver implements LatchObserver {
  readonly #clock: Clock;
  readonly #knownLatch = new WeakMap<Caller, string>();
  readonly #attempts = new Set<string>();
  #current: LatchSnapshot | undefined;
  #createdCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  read(): LatchSnapshot | undefined {
    if (this.#current && this.#current.endsAt <= this.now()) {
      this.#current = undefined;
    }
    return this.#current;
  }

  /** @param attempt that counts down; undefined: it is only looked at */
  call(caller: Caller, attempt: string | undefined): void {
    const met = this.#knownLatch.get(caller);
    if (met !== undefined && met !== this.read()?.id) {
      return;
    }
    const present = this.read() ?? this.#create(caller);
    this.#knownLatch.set(caller, present.id);
    if (attempt !== undefined) {
      this.#attempts.add(attempt);
    }
    this.#current = { ...present, remaining: Math.max(0, present.total - this.#attempts.size) };
  }

  #create({ count, ttlMs }: Caller): LatchSnapshot {
    this.#attempts.clear();
    this.#createdCount += 1;
    return { id: String(this.#createdCount), total: count, remaining: count, endsAt: this.now() + ttlMs };
  }
}
