import { createLocks, isLockError } from "holdfast";
import { http } from "holdfast/http";

export interface Env {
  /** The address of the lock service. */
  readonly LOCK_SERVICE: string;
  /** A token of the service. */
  readonly LOCK_TOKEN: string;
}

const worker: { fetch(request: Request, env: Env): Promise<Response> } = {
  async fetch(request, env) {
    const order = new URL(request.url).pathname.slice(1);
    const locks = createLocks(http(env.LOCK_SERVICE, { token: env.LOCK_TOKEN })); // one for each request
    try {
      return await locks.withLock(`order:${order}`, { ttlMs: 10_000, waitMs: 5_000 }, async (lease) => {
        await charge(lease.signal);
        return Response.json({ order, fencingToken: lease.fencingToken.toString() });
      });
    } catch (error) {
      if (isLockError(error, "wait-timeout")) {
        return new Response("Another request handles this order", { status: 409 });
      }
      if (isLockError(error, "lease-lost")) {
        // The charge was made, or may have been made, so this is no 503, after which clients repeat the request.
        return error.workEnded ? (error.result as Response) : Response.json({ order }, { status: 202 });
      }
      throw error;
    } finally {
      await locks.close();
    }
  },
};

export default worker;

/** In a real worker, a request to the payment service. The signal aborts if the lock is lost. */
async function charge(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  signal.throwIfAborted();
}
