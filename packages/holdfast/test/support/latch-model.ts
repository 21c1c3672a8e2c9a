/** The latch that one caller knows. */
export interface ModelHandle {
  readonly count: number;
  readonly ttlMs: number;
  known: number | undefined;
}

export type WaitState = "waiting" | "open" | "latch-expired" | "limit-mismatch" | "wait-timeout" | "left";

export interface ModelWait {
  readonly latch: number;
  readonly deadline: number;
  state: WaitState;
  /** When the latch entered its state. */
  since: number;
}

interface CurrentLatch {
  readonly id: number;
  readonly count: number;
  readonly endsAt: number;
  readonly attempts: Set<string>;
}

/** The specified state of the latches of one key. */
export class LatchModel {
  now: number;
  readonly waits: ModelWait[] = [];
  #current: CurrentLatch | undefined;
  #createdCount = 0;

  constructor(now: number) {
    this.now = now;
  }

  /** The remaining count. Undefined if no latch exists. */
  get remaining(): number | undefined {
    return this.#current && remainingOf(this.#current);
  }

  /** The remaining time of the latch, ms; 0 if no latch exists. */
  get remainingMs(): number {
    return this.#current ? this.#current.endsAt - this.now : 0;
  }

  /** The remaining count, or the error code of a refusal. */
  countDown(handle: ModelHandle, attempt: string): number | "latch-expired" | "limit-mismatch" {
    const latch = this.#loadOrCreate(handle);
    if (typeof latch === "string") {
      return latch;
    }
    latch.attempts.add(attempt);
    const remaining = remainingOf(latch);
    for (const wait of remaining === 0 ? this.waits : []) {
      this.#settle(wait, "open", latch.id);
    }
    return remaining;
  }

  wait(handle: ModelHandle, waitMs: number): void {
    const latch = this.#loadOrCreate(handle);
    const wait: ModelWait = {
      latch: typeof latch === "string" ? 0 : latch.id,
      deadline: this.now + waitMs,
      state: "waiting",
      since: this.now,
    };
    this.waits.push(wait);
    if (typeof latch === "string") {
      this.#settle(wait, latch);
    } else if (remainingOf(latch) === 0) {
      this.#settle(wait, "open");
    } else if (waitMs === 0) {
      this.#settle(wait, "wait-timeout");
    }
  }

  dequeue(index: number): void {
    const wait = this.waits[index];
    if (wait) {
      this.#settle(wait, "left");
    }
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const deadlines = this.waits.filter(({ state }) => state === "waiting").map(({ deadline }) => deadline);
      const next = Math.min(this.#current?.endsAt ?? Infinity, ...deadlines);
      if (next > end) {
        break;
      }
      this.now = next;
      if (next === this.#current?.endsAt) {
        const { id } = this.#current;
        this.#current = undefined;
        for (const wait of this.waits) {
          this.#settle(wait, "latch-expired", id);
        }
      }
      for (const wait of this.waits.filter(({ deadline }) => deadline <= next)) {
        this.#settle(wait, "wait-timeout");
      }
    }
    this.now = end;
  }

  #loadOrCreate(handle: ModelHandle): CurrentLatch | "latch-expired" | "limit-mismatch" {
    const { count, ttlMs, known } = handle;
    if (known !== undefined && known !== this.#current?.id) {
      return "latch-expired";
    } else if (this.#current && this.#current.count !== count) {
      return "limit-mismatch";
    }
    this.#current ??= { id: ++this.#createdCount, count, endsAt: this.now + ttlMs, attempts: new Set() };
    handle.known = this.#current.id;
    return this.#current;
  }

  #settle(wait: ModelWait, state: WaitState, latch: number = wait.latch): void {
    if (wait.state === "waiting" && wait.latch === latch) {
      wait.state = state;
      wait.since = this.now;
    }
  }
}

function remainingOf({ count, attempts }: CurrentLatch): number {
  return Math.max(0, count - attempts.size);
}
