import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const key = "dead-waiter";
const ttlMs = 20_000;
const maxMs = 1_000;
const program = fileURLToPath(new URL("../waiter.js", import.meta.url));

/** Two processes wait one after the other. The first is killed, and then the holder releases. */
export const deadWaiter: Scenario = {
  withinMs: 40_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const [holding, waiting] = [
      library.onServer(connect(server.port)),
      library.onServer(connect(server.port)),
    ];
    await Promise.all([warmUp(holding), warmUp(waiting)]);
    const state = await holding.acquire(key, { ttlMs, waitMs: 1_000 });
    const first = fork(program, [process.argv[3] ?? "", String(server.port), key]);
    await once(first, "message");
    await pause(700); // the waiter reports before its request, which has been sent by then
    const next = withTimeout(15_000, waiting.acquire(key, { ttlMs, waitMs: 15_000 }));
    await pause(300);
    first.kill("SIGKILL");
    await once(first, "exit");
    const releasedAt = performance.now();
    await state.release();
    const acquired = await next;
    const waited = performance.now() - releasedAt;
    if (acquired.state !== "fulfilled") {
      return failed(`the next waiter did not get the released lock in ${formatMs(waited)}`);
    }
    return waited <= maxMs
      ? passed(`after ${formatMs(waited)}`)
      : failed(`the next waiter waited ${formatMs(waited)} for the released lock`);
  },
};
