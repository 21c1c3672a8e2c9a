import type { Client } from "../run/client.ts";
import { commandTimeoutMs } from "../run/engines.ts";
import type { History } from "./history.ts";
import type { WatchedLatch } from "../run/latch-callers.ts";
import { LatchHistory } from "./latch-history.ts";
import { MemoryLatchObserver, observeServer } from "./latch-snapshot.ts";
import { slowestClockFactor } from "./patience.ts";
import { keysIn } from "../run/quiet-period.ts";
import { isFaultFree, type Schedule } from "../plan/schedule.ts";
import type { ServerMachine } from "../run/server-machine.ts";

/** The largest error of a process about a server's time: the longest delay of a message, ms. */
const maxTimeErrorMs = 1_600;
const faultFreeTimeErrorMs = 50;

/** Creates the judge of each latch of a schedule, by key. */
export function watchLatches(
  schedule: Schedule,
  history: History,
  [machine]: readonly ServerMachine[],
  [client]: readonly Client[],
): ReadonlyMap<string, WatchedLatch> {
  const { kind, steps, scenario } = schedule;
  const aheadMs = isFaultFree(schedule) ? faultFreeTimeErrorMs : maxTimeErrorMs;
  // If a server's clock was set, the judge cannot know which requests arrive after their deadline.
  const isClockSteady = !steps.some((step) => step.kind === "step node");
  const bounds = {
    latestMs: isClockSteady ? commandTimeoutMs * slowestClockFactor + aheadMs : Infinity,
    isDurable: isClockSteady && !steps.some((step) => step.kind === "restart node" && !step.keepData),
    dequeuesOnTimeout: scenario === "calm",
    openBound: () => history.freeBound,
  };
  const watched = (kind === "latch" ? keysIn(steps) : []).map((key): [string, WatchedLatch] => {
    const memory = machine ? undefined : new MemoryLatchObserver((client as Client).process.clock);
    const observer = machine
      ? observeServer(machine.server, machine.clock, key)
      : (memory as MemoryLatchObserver);
    return [key, { memory, history: new LatchHistory(history.findings, key, observer, bounds) }];
  });
  return new Map(watched);
}
