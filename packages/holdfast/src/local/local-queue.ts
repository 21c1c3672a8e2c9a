import { Link, Queue } from "../runtime/linked-queue.ts";
import type { Waiter } from "../lock-state.ts";

/** A local caller in a line. The line tells it what its turn is; it tells the line when it leaves. */
export interface Caller<Hold> {
  /** Its place in the line. */
  readonly link: Link<Caller<Hold>>;
  /** It has gone to the engine. The line keeps this; nobody else writes it. */
  isContending: boolean;
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

/** What may be handed over. The line keeps `run`; nobody else writes it. */
export interface Handed<Hold> {
  run: Run<Hold> | undefined;
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

/** How far the grant of a hold has gone: its place among the holds of the line. */
export class Run<Hold> extends Link<Hold> {
  readonly handovers: number;
  readonly since: number;

  constructor(hold: Hold, handovers: number, since: number) {
    super(hold);
    this.handovers = handovers;
    this.since = since;
  }
}

/**
 * Callers of this process that want the same of one key, in order of arrival. So many contend at the engine as there are places that
 * the process does not hold, and at least `spare`: the others wait here. A mutex has one place and none to spare.
 * Knows order and hand-over; nothing of time, timers or engines.
 */
export class Line<Hold extends Handed<Hold>> {
  readonly #places: number;
  readonly #spare: number;
  readonly #waiting = new Queue<Caller<Hold>>();
  readonly #holds = new Queue<Hold>();
  #contending = 0;
  #wasGranted = false;
  /** The last holder that reported waiting callers to the engine. */
  reporter: Hold | undefined;

  constructor(places: number, spare: number) {
    this.#places = places;
    this.#spare = spare;
  }

  /** Nobody waits, contends or holds: the line may be forgotten. */
  get isEmpty(): boolean {
    return this.length === 0 && this.#holds.size === 0;
  }

  /** How many callers of this line wait, at the engine or here. */
  get length(): number {
    return this.#waiting.size + this.#contending;
  }

  /** Callers that wait here and not at the engine, in order. */
  get waiting(): Iterable<Caller<Hold>> {
    return this.#waiting.items();
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** How many callers of the line a waiting one has before it, those at the engine included. */
  placeOf(caller: Caller<Hold>): number {
    let place = this.#contending;
    for (let link = caller.link.before; link; link = link.before) {
      place += 1;
    }
    return place;
  }

  /** The holds that the next in line may be handed, those of the oldest runs first. */
  get holds(): Iterable<Hold> {
    return this.#holds.items();
  }

  /** This process holds all places that there are. */
  get isFull(): boolean {
    return this.#holds.size >= this.#places;
  }

  get holder(): Hold | undefined {
    return this.#holds.first;
  }

  /** The engine has granted what this line asks for, since the first of those came that are in it now. */
  get wasGranted(): boolean {
    return this.#wasGranted;
  }

  /** Stands in line. Whoever finds a place free contends at once. */
  join(caller: Caller<Hold>): void {
    this.#wasGranted &&= !this.isEmpty;
    this.#waiting.add(caller.link);
    this.#advance();
  }

  /** A caller gives up or was refused: the next one's turn. */
  leave(caller: Caller<Hold>): void {
    if (!this.#endContending(caller)) {
      this.#waiting.delete(caller.link);
    }
    this.#advance();
  }

  /** The engine granted a caller, which begins a run. */
  granted(caller: Caller<Hold>, hold: Hold, now: number): void {
    if (this.#endContending(caller)) {
      this.#keep(hold, 0, now);
      this.#advance();
    } else {
      this.begin(hold, now);
    }
  }

  /** A hold that was got past the line serves it too, unless its places are held or contended for. */
  begin(hold: Hold, now: number): void {
    if (this.#holds.size + this.#contending < this.#places) {
      this.#keep(hold, 0, now);
    }
  }

  /** The hold is given back by its owner. */
  release(hold: Hold, now: number, limits: HandoverLimits): Leaving {
    const { run } = hold;
    if (!run?.isQueued) {
      return { to: "engine" };
    }
    this.#holds.delete(run);
    const next = this.#waiting.first;
    const runGoesOn = run.handovers < limits.max && now - run.since < limits.maxMs;
    if (next && runGoesOn && next.accepts(hold)) {
      this.#waiting.delete(next.link);
      this.#keep(next.receive(hold), run.handovers + 1, run.since);
      return { to: "caller" };
    } else if (next && this.#mayContend) {
      return { to: "others", released: this.#contend(next, hold) };
    }
    return { to: "engine" };
  }

  /** The hold ended in another way: lost, orphaned, transferred. Nobody can be handed it. */
  ended(hold: Hold): void {
    if (hold.run?.isQueued === true) {
      this.#holds.delete(hold.run);
      this.#advance();
    }
  }

  get #mayContend(): boolean {
    return this.#contending < Math.max(this.#spare, this.#places - this.#holds.size);
  }

  #keep(hold: Hold, handovers: number, since: number): void {
    hold.run = new Run(hold, handovers, since);
    this.#holds.add(hold.run);
    this.#wasGranted = true;
  }

  #advance(): void {
    for (let next = this.#waiting.first; next && this.#mayContend; next = this.#waiting.first) {
      void this.#contend(next);
    }
  }

  #contend(next: Caller<Hold>, from?: Hold): Promise<boolean> | undefined {
    this.#waiting.delete(next.link);
    next.isContending = true;
    this.#contending += 1;
    return next.contend(from);
  }

  #endContending(caller: Caller<Hold>): boolean {
    if (!caller.isContending) {
      return false;
    }
    caller.isContending = false;
    this.#contending -= 1;
    return true;
  }
}
