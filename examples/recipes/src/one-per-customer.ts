import { DelayedError, type Job, type Processor } from "bullmq";
import type { Lease, Locks } from "holdfast";

/** How long a job waits before it tries again, ms. */
const retryMs = 100;

/** The data of a job that needs its customer alone. */
interface CustomerData {
  readonly customer: string;
}

/**
 * A processor of BullMQ that runs at most one job per customer, in all workers. A job of a busy customer returns to the queue, so that
 * its worker takes a job of another customer.
 */
export function onePerCustomer<D extends CustomerData, R>(
  locks: Locks,
  work: (job: Job<D, R>, lease: Lease) => Promise<R>,
): Processor<D, R> {
  return async (job, token) => {
    const result = await locks.tryWithLock(`customer:${job.data.customer}`, (lease) => work(job, lease));
    if (result.ran) {
      return result.value;
    }
    await job.moveToDelayed(Date.now() + retryMs, token);
    throw new DelayedError();
  };
}
