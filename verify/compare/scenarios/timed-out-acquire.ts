import { setTimeout as pause } from "node:timers/promises";

import { startProxy, startRedis, waitUntil } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const ttlMs = 20_000;
const waitMs = 1_000;
const commandTimeout = 500;
const unavailableMs = 4_000;
const maxMs = 3_000;
const timeoutMs = 12_000;

/**
 * The server executes requests, but for a while its replies are lost. Every client fails a command after half a second, so that every library
 * gets an error.
 */
export const timedOutAcquire: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    const observer = direct(server);
    const locks = library.onServer(connect(proxy.port, { commandTimeout }));
    await warmUp(locks);
    const name = locks.nameOnServer("timed-out");
    proxy.pause("replies");
    const healing = pause(unavailableMs).then(() => {
      proxy.resume("replies");
    });
    const acquired = await withTimeout(timeoutMs, locks.acquire("timed-out", { ttlMs, waitMs }));
    await healing;
    if (acquired.state === "fulfilled") {
      return passed(`did not time out: granted after ${formatMs(acquired.afterMs)}`);
    }
    if (acquired.state === "pending") {
      return failed(`did not settle in ${formatMs(acquired.afterMs)}`);
    }
    const isFree = async (): Promise<boolean> => (await observer.exists(name)) === 0;
    await waitUntil(isFree, "the lock is free", maxMs).catch(() => undefined);
    return (await isFree())
      ? passed(`timed out after ${formatMs(acquired.afterMs)}`)
      : failed(
          `timed out after ${formatMs(acquired.afterMs)}, and the lock stayed held for another ${formatMs(await observer.pttl(name))}`,
        );
  },
};
