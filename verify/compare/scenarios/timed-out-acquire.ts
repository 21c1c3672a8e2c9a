import { setTimeout as pause } from "node:timers/promises";

import { startProxy, startRedis, until } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, time, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";
import { within } from "../within.ts";

const ttlMs = 20_000;
const waitMs = 1_000;
const commandTimeout = 500;
const awayMs = 4_000;
const mostMs = 3_000;
const patienceMs = 12_000;

/**
 * The server does what it is asked, but none of its replies comes through for a while; every client gives a command up after
 * half a second, so that every library hears of a failure.
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
    const healing = pause(awayMs).then(() => {
      proxy.resume("replies");
    });
    const acquired = await within(patienceMs, locks.acquire("timed-out", { ttlMs, waitMs }));
    await healing;
    if (acquired.state === "fulfilled") {
      return passed(`did not give up: granted after ${time(acquired.afterMs)}`);
    }
    if (acquired.state === "pending") {
      return failed(`did not answer in ${time(acquired.afterMs)}`);
    }
    const isFree = async (): Promise<boolean> => (await observer.exists(name)) === 0;
    await until(isFree, "the lock is free", mostMs).catch(() => undefined);
    return (await isFree())
      ? passed(`gave up after ${time(acquired.afterMs)}`)
      : failed(
          `gave up after ${time(acquired.afterMs)}, and left the lock taken for ${time(await observer.pttl(name))} more`,
        );
  },
};
