import { Queue, type Link } from "./queue.ts";
import type { Waiter } from "./state.ts";

/** A local caller in a line. The line tells it what its turn is; it tells the line when it leaves. */
export interface Caller<Hold> {
  /** Its place in the line. */
  readonly link: Link<Caller<Hold>>;
  /** For `inspect`. */
  describe(): Omit<Waiter, "position">;
  /** Whether it may take this hold over in memory. */
  accepts(hold: Hold): boolean;
  /** Takes the hold over; what it holds from now on. */
  receive(hold: Hold): Hold;
  /**
   * Goes to the engine. With `from` it gives that hold up in the same step, so that other processes get their turn.
   * @returns with `from`: whether it was still ours
   */
  contend(from?: Hold): Promise<boolean> | undefined;
}

/** How far a run of hand-overs may go before other processes get their turn. */
export interface HandoverLimits {
  readonly max: number;
  readonly maxMs: number;
}

/** What a release comes to: the hold goes on in memory, or was passed on by the engine, or is the caller's to release. */
export type Leaving =
  | { readonly to: "caller" }
  | { readonly to: "others"; readonly released: Promise<boolean> | undefined }
  | { readonly to: "engine" };

/**
 * The local line before one key: callers of this process in order of arrival, of whom only the first contends at the engine.
 * Knows order and hand-over; nothing of time, timers or engines.
 */
export class Line<Hold extends object> {
  readonly #waiting = new Queue<Caller<Hold>>();
  #contender: Caller<Hold> | undefined;
  #holder: Hold | undefined;
  #handovers = 0;
  #runSince = 0;
  /** Callers that wait for the key past the line, each by itself. */
  outside = 0;
  /** The last holder that reported waiting callers to the engine. */
  reporter: Hold | undefined;

  /** Nobody waits, contends or holds: the line may be forgotten. */
  get isEmpty(): boolean {
    return this.length === 0 && !this.#holder;
  }

  /** How many callers of this process wait. */
  get length(): number {
    return this.#waiting.size + (this.#contender ? 1 : 0) + this.outside;
  }

  /** Callers that wait here and not at the engine, in order. */
  get waiting(): Iterable<Caller<Hold>> {
    return this.#waiting.items();
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** How many callers of the line a waiting one has before it, the one at the engine included. */
  placeOf(caller: Caller<Hold>): number {
    let place = this.#contender ? 1 : 0;
    for (let link = caller.link.before; link; link = link.before) {
      place += 1;
    }
    return place;
  }

  /** The hold that the next in line may be handed. */
  get holder(): Hold | undefined {
    return this.#holder;
  }

  /** Stands in line. Whoever finds nobody there contends at once. */
  join(caller: Caller<Hold>): void {
    this.#waiting.add(caller.link);
    this.#advance();
  }

  /** A caller gives up or was refused: the next one's turn. */
  leave(caller: Caller<Hold>): void {
    this.#waiting.delete(caller.link);
    if (this.#contender === caller) {
      this.#contender = undefined;
    }
    this.#advance();
  }

  /** The engine granted the contender, which begins a run. */
  granted(caller: Caller<Hold>, hold: Hold, now: number): void {
    this.#contender = this.#contender === caller ? undefined : this.#contender;
    this.begin(hold, now);
  }

  /** A hold that was got past the line serves it too, unless somebody already contends or holds. */
  begin(hold: Hold, now: number): void {
    if (!this.#contender && !this.#holder) {
      this.#holder = hold;
      this.#handovers = 0;
      this.#runSince = now;
    }
  }

  /** The hold is given back by its owner. */
  release(hold: Hold, now: number, limits: HandoverLimits): Leaving {
    if (this.#holder !== hold) {
      return { to: "engine" };
    }
    this.#holder = undefined;
    const next = this.#waiting.first;
    if (!next || this.#contender) {
      return { to: "engine" };
    }
    this.#waiting.delete(next.link);
    const runGoesOn = this.#handovers < limits.max && now - this.#runSince < limits.maxMs;
    if (runGoesOn && next.accepts(hold)) {
      this.#handovers += 1;
      this.#holder = next.receive(hold);
      return { to: "caller" };
    }
    this.#contender = next;
    return { to: "others", released: next.contend(hold) };
  }

  /** The hold ended in another way: lost, orphaned, transferred. Nobody can be handed it. */
  ended(hold: Hold): void {
    if (this.#holder === hold) {
      this.#holder = undefined;
      this.#advance();
    }
  }

  #advance(): void {
    const next = this.#waiting.first;
    if (next && !this.#contender && !this.#holder) {
      this.#waiting.delete(next.link);
      this.#contender = next;
      void next.contend();
    }
  }
}
