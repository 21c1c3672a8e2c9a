import { HandoverRun, type Handoverable } from "../lease/handover-run.ts";
import { LinkedQueue, type QueueNode } from "../runtime/linked-queue.ts";
import type { Waiter } from "../lock-state.ts";

/** A local caller in a line. The line tells it what its turn is; it tells the line when it leaves. */
export interface LocalWaiter<Hold> {
  /** Its place in the line. */
  readonly queueNode: QueueNode<LocalWaiter<Hold>>;
  /** It has gone to the engine. The line keeps this; nobody else writes it. */
  isAtEngine: boolean;
  /** For `inspect`. */
  describe(): Omit<Waiter, "position">;
  /** Whether it may take this hold over in memory. */
  canTakeOver(hold: Hold): boolean;
  /** Takes the hold over; what it holds from now on. */
  takeOver(hold: Hold): Hold;
  /**
   * Goes to the engine. With `from` it gives that hold up in the same step, so that other processes get their turn.
   * @returns with `from`: whether it was still ours
   */
  requestFromEngine(previous?: Hold): Promise<boolean> | undefined;
}

/** How far a run of hand-overs may go before other processes get their turn. */
export interface HandoverLimits {
  readonly max: number;
  readonly maxMs: number;
}

/** What a release comes to: the hold goes on in memory, or was passed on by the engine, or is the caller's to release. */
export type ReleaseDecision =
  | { readonly to: "caller" }
  | { readonly to: "others"; readonly released: Promise<boolean> | undefined }
  | { readonly to: "engine" };

/**
 * Callers of this process that want the same of one key, in order of arrival. So many contend at the engine as there are places that
 * the process does not hold, and at least `spare`: the others wait here. A mutex has one place and none to spare.
 * Knows order and hand-over; nothing of time, timers or engines.
 */
export class LocalQueue<Hold extends Handoverable<Hold>> {
  readonly #capacity: number;
  readonly #minAtEngine: number;
  readonly #waiting = new LinkedQueue<LocalWaiter<Hold>>();
  readonly #held = new LinkedQueue<Hold>();
  #atEngineCount = 0;
  #wasGranted = false;
  /** The last holder that reported waiting callers to the engine. */
  waiterReporter: Hold | undefined;

  constructor(capacity: number, minAtEngine: number) {
    this.#capacity = capacity;
    this.#minAtEngine = minAtEngine;
  }

  /** Nobody waits, contends or holds: the line may be forgotten. */
  get isEmpty(): boolean {
    return this.waiterCount === 0 && this.#held.size === 0;
  }

  /** How many callers of this line wait, at the engine or here. */
  get waiterCount(): number {
    return this.#waiting.size + this.#atEngineCount;
  }

  /** Callers that wait here and not at the engine, in order. */
  get waiting(): Iterable<LocalWaiter<Hold>> {
    return this.#waiting.items();
  }

  get localWaiterCount(): number {
    return this.#waiting.size;
  }

  /** How many callers of the line a waiting one has before it, those at the engine included. */
  positionOf(waiter: LocalWaiter<Hold>): number {
    let position = this.#atEngineCount;
    for (let link = waiter.queueNode.previous; link; link = link.previous) {
      position += 1;
    }
    return position;
  }

  /** The holds that the next in line may be handed, those of the oldest runs first. */
  get held(): Iterable<Hold> {
    return this.#held.items();
  }

  /** This process holds all places that there are. */
  get isFull(): boolean {
    return this.#held.size >= this.#capacity;
  }

  get holder(): Hold | undefined {
    return this.#held.first;
  }

  /** The engine has granted what this line asks for, since the first of those came that are in it now. */
  get wasGranted(): boolean {
    return this.#wasGranted;
  }

  /** Stands in line. Whoever finds a place free contends at once. */
  enqueue(waiter: LocalWaiter<Hold>): void {
    this.#wasGranted &&= !this.isEmpty;
    this.#waiting.add(waiter.queueNode);
    this.#advance();
  }

  /** A caller gives up or was refused: the next one's turn. */
  dequeue(waiter: LocalWaiter<Hold>): void {
    if (!this.#leaveEngine(waiter)) {
      this.#waiting.delete(waiter.queueNode);
    }
    this.#advance();
  }

  /** The engine granted a caller, which begins a run. */
  granted(waiter: LocalWaiter<Hold>, hold: Hold, now: number): void {
    if (this.#leaveEngine(waiter)) {
      this.#addHolder(hold, 0, now);
      this.#advance();
    } else {
      this.startRun(hold, now);
    }
  }

  /** A hold that was got past the line serves it too, unless its places are held or contended for. */
  startRun(hold: Hold, now: number): void {
    if (this.#held.size + this.#atEngineCount < this.#capacity) {
      this.#addHolder(hold, 0, now);
    }
  }

  /** The hold is given back by its owner. */
  release(hold: Hold, now: number, limits: HandoverLimits): ReleaseDecision {
    const { handoverRun } = hold;
    if (!handoverRun?.isQueued) {
      return { to: "engine" };
    }
    this.#held.delete(handoverRun);
    const next = this.#waiting.first;
    const canHandOver = handoverRun.handovers < limits.max && now - handoverRun.since < limits.maxMs;
    if (next && canHandOver && next.canTakeOver(hold)) {
      this.#waiting.delete(next.queueNode);
      this.#addHolder(next.takeOver(hold), handoverRun.handovers + 1, handoverRun.since);
      return { to: "caller" };
    } else if (next && this.#canRequest) {
      return { to: "others", released: this.#sendToEngine(next, hold) };
    }
    return { to: "engine" };
  }

  /** The hold ended in another way: lost, orphaned, transferred. Nobody can be handed it. */
  leaseEnded(hold: Hold): void {
    if (hold.handoverRun?.isQueued === true) {
      this.#held.delete(hold.handoverRun);
      this.#advance();
    }
  }

  get #canRequest(): boolean {
    return this.#atEngineCount < Math.max(this.#minAtEngine, this.#capacity - this.#held.size);
  }

  #addHolder(hold: Hold, handovers: number, since: number): void {
    hold.handoverRun = new HandoverRun(hold, handovers, since);
    this.#held.add(hold.handoverRun);
    this.#wasGranted = true;
  }

  #advance(): void {
    for (let next = this.#waiting.first; next && this.#canRequest; next = this.#waiting.first) {
      void this.#sendToEngine(next);
    }
  }

  #sendToEngine(next: LocalWaiter<Hold>, previous?: Hold): Promise<boolean> | undefined {
    this.#waiting.delete(next.queueNode);
    next.isAtEngine = true;
    this.#atEngineCount += 1;
    return next.requestFromEngine(previous);
  }

  #leaveEngine(waiter: LocalWaiter<Hold>): boolean {
    if (!waiter.isAtEngine) {
      return false;
    }
    waiter.isAtEngine = false;
    this.#atEngineCount -= 1;
    return true;
  }
}
