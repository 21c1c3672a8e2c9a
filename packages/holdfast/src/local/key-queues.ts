import type { LockMode } from "../driver.ts";
import type { Handoverable } from "../lease/handover-run.ts";
import { LocalQueue } from "./local-queue.ts";

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
