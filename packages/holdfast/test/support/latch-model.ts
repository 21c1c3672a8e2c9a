/** One caller's view: which latch it has met. */
export interface ModelView {
  readonly count: number;
  readonly ttlMs: number;
  known: number | undefined;
}

export type WaitState = "waiting" | "open" | "latch-expired" | "limit-mismatch" | "wait-timeout" | "left";

export interface ModelWait {
  readonly latch: number;
  readonly deadline: number;
  state: WaitState;
  /** When it got its state. */
  since: number;
}

interface Present {
  readonly id: number;
  readonly count: number;
  readonly endsAt: number;
  readonly attempts: Set<string>;
}

/** What the latches of one key are to be, at every moment. */
export class LatchModel {
  now: number;
  readonly waits: ModelWait[] = [];
  #present: Present | undefined;
  #made = 0;

  constructor(now: number) {
    this.now = now;
  }

  /** What is left; undefined: there is no latch. */
  get left(): number | undefined {
    return this.#present && leftOf(this.#present);
  }

  /** What is left, or how it is refused. */
  countDown(view: ModelView, attempt: string): number | "latch-expired" | "limit-mismatch" {
    const latch = this.#touch(view);
    if (typeof latch === "string") {
      return latch;
    }
    latch.attempts.add(attempt);
    const left = leftOf(latch);
    for (const wait of left === 0 ? this.waits : []) {
      this.#settle(wait, "open", latch.id);
    }
    return left;
  }

  wait(view: ModelView, waitMs: number): void {
    const latch = this.#touch(view);
    const wait: ModelWait = {
      latch: typeof latch === "string" ? 0 : latch.id,
      deadline: this.now + waitMs,
      state: "waiting",
      since: this.now,
    };
    this.waits.push(wait);
    if (typeof latch === "string") {
      this.#settle(wait, latch);
    } else if (leftOf(latch) === 0) {
      this.#settle(wait, "open");
    } else if (waitMs === 0) {
      this.#settle(wait, "wait-timeout");
    }
  }

  leave(index: number): void {
    const wait = this.waits[index];
    if (wait) {
      this.#settle(wait, "left");
    }
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const deadlines = this.waits.filter(({ state }) => state === "waiting").map(({ deadline }) => deadline);
      const next = Math.min(this.#present?.endsAt ?? Infinity, ...deadlines);
      if (next > end) {
        break;
      }
      this.now = next;
      if (next === this.#present?.endsAt) {
        const { id } = this.#present;
        this.#present = undefined;
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

  #touch(view: ModelView): Present | "latch-expired" | "limit-mismatch" {
    const { count, ttlMs, known } = view;
    if (known !== undefined && known !== this.#present?.id) {
      return "latch-expired";
    } else if (this.#present && this.#present.count !== count) {
      return "limit-mismatch";
    }
    this.#present ??= { id: ++this.#made, count, endsAt: this.now + ttlMs, attempts: new Set() };
    view.known = this.#present.id;
    return this.#present;
  }

  #settle(wait: ModelWait, state: WaitState, latch: number = wait.latch): void {
    if (wait.state === "waiting" && wait.latch === latch) {
      wait.state = state;
      wait.since = this.now;
    }
  }
}

function leftOf({ count, attempts }: Present): number {
  return Math.max(0, count - attempts.size);
}
