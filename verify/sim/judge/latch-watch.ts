import type { Client } from "../run/client.ts";
import { commandTimeoutMs } from "../run/engines.ts";
import type { History } from "./history.ts";
import type { WatchedLatch } from "../run/latch-callers.ts";
import { LatchHistory } from "./latch-history.ts";
import { MemorySight, sightOfServer } from "./latch-snapshot.ts";
import { slowly } from "./patience.ts";
import { keysIn } from "../run/quiet-period.ts";
import { isFlawless, type Schedule } from "../plan/schedule.ts";
import type { ServerMachine } from "../run/server-machine.ts";

/** How wrong a process may be about a server's time: by what a message takes at most, ms. */
const slowestMs = 1_600;
const fastestMs = 50;

/** Somebody who watches each latch of a schedule, by key. */
export function watchLatches(
  schedule: Schedule,
  history: History,
  [machine]: readonly ServerMachine[],
  [client]: readonly Client[],
): ReadonlyMap<string, WatchedLatch> {
  const { kind, steps, weather } = schedule;
  const aheadMs = isFlawless(schedule) ? fastestMs : slowestMs;
  // Where its clock was set nobody knows what comes too late there.
  const isTimed = !steps.some((step) => step.kind === "step node");
  const terms = {
    latestMs: isTimed ? commandTimeoutMs * slowly + aheadMs : Infinity,
    isKept: isTimed && !steps.some((step) => step.kind === "restart node" && !step.keepData),
    isTidy: weather === "calm",
    patience: () => history.patience,
  };
  const watched = (kind === "latch" ? keysIn(steps) : []).map((key): [string, WatchedLatch] => {
    const memory = machine ? undefined : new MemorySight((client as Client).process.clock);
    const sight = machine ? sightOfServer(machine.server, machine.clock, key) : (memory as MemorySight);
    return [key, { memory, history: new LatchHistory(history.findings, key, sight, terms) }];
  });
  return new Map(watched);
}
