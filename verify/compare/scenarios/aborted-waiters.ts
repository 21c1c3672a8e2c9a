import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, outcomeOf, notOffered, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const key = "aborted-waiters";
const waiters = 2_000;
const ttlMs = 10_000;
const maxMs = 2_000;
const timeoutMs = 10_000;

/** One process waits 2 000 times for a lock of another program, and aborts all waits at once. */
export const abortedWaiters: Scenario = {
  withinMs: 40_000,
  isHeavy: true,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const admin = direct(server);
    const locks = library.onServer(connect(server.port));
    const { acquireUntilAborted } = locks;
    if (acquireUntilAborted === null) {
      return notOffered("waiting cannot be aborted");
    }
    await warmUp(locks);
    const name = locks.nameOnServer(key);
    await admin.set(name, "another's", "PX", 120_000);
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const waiting = Array.from({ length: waiters }, () => acquireUntilAborted(key, ttlMs, controller.signal));
    const settling = Promise.allSettled(waiting);
    await pause(2_000);
    controller.abort(new Error("called off"));
    const settled = await withTimeout(timeoutMs, settling);
    if (settled.state !== "fulfilled") {
      return failed(`some of ${waiters} waiters had not ended ${formatMs(settled.afterMs)} after the abort`);
    }
    await admin.del(name);
    const acquired = await withTimeout(timeoutMs, locks.acquire(key, { ttlMs, waitMs: 5_000 }));
    if (acquired.state !== "fulfilled") {
      return failed("the lock could not be acquired afterwards");
    }
    await acquired.value.release();
    const remaining = (await admin.exists(name)) === 1;
    return outcomeOf(
      [
        ...(settled.afterMs > maxMs ? [`${waiters} waiters took ${formatMs(settled.afterMs)} to end`] : []),
        ...(acquired.afterMs > 1_000
          ? [`the freed lock was acquired after ${formatMs(acquired.afterMs)}`]
          : []),
        ...(remaining ? ["the lock stayed held"] : []),
      ],
      `all ended within ${formatMs(settled.afterMs)}`,
    );
  },
};
