import type { LockMode } from "../driver.ts";
import type { Handoverable } from "../lease/handover-run.ts";
import { LocalQueue } from "./local-queue.ts";

/** So many lines of a semaphore are kept, also those that nobody stands in. */
const idleQueuesKept = 8;

/** All lines before one key. Callers that want the same of it stand in one: of a semaphore as many permits of the same limit. */
export class KeyQueues<Hold extends Handoverable<Hold>> {
  readonly mutex: LocalQueue<Hold> = new LocalQueue<Hold>(1, 0);
  #semaphores: Map<string, LocalQueue<Hold>> | undefined;
  /** Callers that wait for the key past the lines, each by itself. */
  directWaiters = 0;

  get isEmpty(): boolean {
    return this.directWaiters === 0 && this.queues.every((queue) => queue.isEmpty);
  }

  /** How many callers of this process wait for the key. */
  get waiterCount(): number {
    return this.queues.reduce((sum, queue) => sum + queue.waiterCount, this.directWaiters);
  }

  get queues(): readonly LocalQueue<Hold>[] {
    return this.#semaphores ? [this.mutex, ...this.#semaphores.values()] : [this.mutex];
  }

  /** Of a semaphore the first that waits always stands in the queue of the engine, which therefore remembers the limit. */
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
