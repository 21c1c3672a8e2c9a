import { type Handoverable, HandoverRun } from "../lease/lease-state.ts";
import { LinkedQueue, type QueueNode } from "../runtime/linked-queue.ts";
import type { Waiter } from "../lock-state.ts";
import type { LockMode } from "../driver.ts";

/** A caller in a local queue. The queue decides its turn, and the caller dequeues itself when it stops waiting. */
export interface LocalWaiter<Hold> {
  /** The node of the caller in the queue. */
  readonly queueNode: QueueNode<LocalWaiter<Hold>>;
  /** Whether the caller waits at the engine. Only the queue writes it. */
  isAtEngine: boolean;
  /** The caller as shown by `inspect`. */
  describe(): Omit<Waiter, "position">;
  /** Whether the lease may be handed over to this caller. */
  canTakeOver(hold: Hold): boolean;
  /** Takes the grant of the lease over. @returns the lease of this caller */
  takeOver(hold: Hold): Hold;
  /**
   * Requests the lock from the engine. With `previous`, that lease is released in the same step, so that other processes get their
   * turn.
   * @returns with `previous`: whether that lease held the lock until its release
   */
  requestFromEngine(previous?: Hold): Promise<boolean> | undefined;
}

/** The bounds of the hand-overs of one grant, before other processes get their turn. */
interface HandoverLimits {
  readonly max: number;
  readonly maxMs: number;
}

/** The result of a release: handed over to a local caller, requeued at the engine, or to be released at the engine. */
type ReleaseDecision =
  | { readonly to: "caller" }
  | { readonly to: "others"; readonly released: Promise<boolean> | undefined }
  | { readonly to: "engine" };

/**
 * Callers of this process with equal requests for one key, in order of arrival. At most `capacity` leases and requests exist at once,
 * but at least `minAtEngine` callers may wait at the engine. The other callers wait in this queue. A mutex has the capacity 1.
 * The queue decides order and hand-over. It has no timers and does not know the engine.
 */
export class LocalQueue<Hold extends Handoverable<Hold>> {
  readonly #capacity: number;
  readonly #minAtEngine: number;
  readonly #waiting = new LinkedQueue<LocalWaiter<Hold>>();
  readonly #held = new LinkedQueue<Hold>();
  #atEngineCount = 0;
  #wasGranted = false;
  /** The last lease that reported local waiters to the engine. */
  waiterReporter: Hold | undefined;

  constructor(capacity: number, minAtEngine: number) {
    this.#capacity = capacity;
    this.#minAtEngine = minAtEngine;
  }

  /** Whether the queue has no waiter and no lease, so that it may be dropped. */
  get isEmpty(): boolean {
    return this.waiterCount === 0 && this.#held.size === 0;
  }

  /** How many callers wait, in this queue or at the engine. */
  get waiterCount(): number {
    return this.#waiting.size + this.#atEngineCount;
  }

  /** The callers that wait in this queue and not at the engine, in order. */
  get waiting(): Iterable<LocalWaiter<Hold>> {
    return this.#waiting.items();
  }

  /** The caller that has waited longest in this queue. */
  get first(): LocalWaiter<Hold> | undefined {
    return this.#waiting.first;
  }

  get localWaiterCount(): number {
    return this.#waiting.size;
  }

  /** How many callers come before a waiter, including those at the engine. */
  positionOf(waiter: LocalWaiter<Hold>): number {
    let position = this.#atEngineCount;
    for (let link = waiter.queueNode.previous; link; link = link.previous) {
      position += 1;
    }
    return position;
  }

  /** The leases that may be handed over to the next waiter, oldest grants first. */
  get held(): Iterable<Hold> {
    return this.#held.items();
  }

  /** Whether this process holds all of the capacity. */
  get isFull(): boolean {
    return this.#held.size >= this.#capacity;
  }

  get holder(): Hold | undefined {
    return this.#held.first;
  }

  /** Whether the engine has granted a request of this queue since the queue was last empty. */
  get wasGranted(): boolean {
    return this.#wasGranted;
  }

  /** Adds a caller. If the capacity allows, the caller requests the lock at once. */
  enqueue(waiter: LocalWaiter<Hold>): void {
    this.#wasGranted &&= !this.isEmpty;
    this.#waiting.add(waiter.queueNode);
    this.#advance();
  }

  /** Removes a caller that stopped waiting or was refused. The next caller gets its turn. */
  dequeue(waiter: LocalWaiter<Hold>): void {
    if (!this.#leaveEngine(waiter)) {
      this.#waiting.delete(waiter.queueNode);
    }
    this.#advance();
  }

  /** Records a grant of the engine, which starts a new run of hand-overs. */
  granted(waiter: LocalWaiter<Hold>, hold: Hold, now: number): void {
    if (this.#leaveEngine(waiter)) {
      this.#addHolder(hold, 0, now);
      this.#advance();
    } else {
      this.startRun(hold, now);
    }
  }

  /** Adds a lease that was acquired without this queue, unless the capacity is used up. */
  startRun(hold: Hold, now: number): void {
    if (this.#held.size + this.#atEngineCount < this.#capacity) {
      this.#addHolder(hold, 0, now);
    }
  }

  /** Decides how a lease is released. */
  release(hold: Hold, now: number, limits: HandoverLimits): ReleaseDecision {
    const { handoverRun } = hold;
    if (!handoverRun?.isQueued) {
      return { to: "engine" };
    }
    const canHandOver = this.mayHandOver(hold, now, limits);
    this.#held.delete(handoverRun);
    const next = this.#waiting.first;
    if (next && canHandOver && next.canTakeOver(hold)) {
      this.#waiting.delete(next.queueNode);
      this.#addHolder(next.takeOver(hold), handoverRun.handovers + 1, handoverRun.since);
      return { to: "caller" };
    } else if (next && this.#canRequest) {
      return { to: "others", released: this.#sendToEngine(next, hold) };
    }
    return { to: "engine" };
  }

  /** Whether a release of the lease may hand it over. Once false, it stays false. */
  mayHandOver({ handoverRun }: Hold, now: number, { max, maxMs }: HandoverLimits): boolean {
    return handoverRun?.isQueued === true && handoverRun.handovers < max && now - handoverRun.since < maxMs;
  }

  /** Removes a lease that was lost, orphaned or transferred, because it cannot be handed over. */
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

/** Up to this many queues of a semaphore are kept, also idle ones. */
const idleQueuesKept = 8;

const none: readonly LocalQueue<never>[] = [];

/** All local queues of one key. Callers share a queue if their requests are equal: for a semaphore, equal permits and limit. */
export class KeyQueues<Hold extends Handoverable<Hold>> {
  readonly mutex: LocalQueue<Hold> = new LocalQueue<Hold>(1, 0);
  #semaphores: Map<string, LocalQueue<Hold>> | undefined;
  /** How many callers wait for the key at the engine, each without a local queue. */
  directWaiters = 0;

  get isEmpty(): boolean {
    return this.directWaiters === 0 && this.queues.every((queue) => queue.isEmpty);
  }

  /** How many callers of this process wait for the key. */
  get waiterCount(): number {
    let count = this.directWaiters + this.mutex.waiterCount;
    for (const queue of this.#semaphores?.values() ?? none) {
      count += queue.waiterCount;
    }
    return count;
  }

  get queues(): readonly LocalQueue<Hold>[] {
    return this.#semaphores ? [this.mutex, ...this.#semaphores.values()] : [this.mutex];
  }

  /** The first waiter of a semaphore is always queued at the engine, so that the engine remembers the limit. */
  queueFor(lockMode: LockMode | undefined): LocalQueue<Hold> {
    if (lockMode?.kind !== "semaphore") {
      return this.mutex;
    }
    const { permits, limit } = lockMode;
    const name = `${permits}/${limit}`;
    let queue = this.#semaphores?.get(name);
    if (!queue) {
      queue = new LocalQueue(Math.floor(limit / permits), 1);
      const existing = [...(this.#semaphores ?? [])];
      const retained =
        existing.length < idleQueuesKept ? existing : existing.filter(([, { isEmpty }]) => !isEmpty);
      this.#semaphores = new Map([...retained, [name, queue]]);
    }
    return queue;
  }
}
