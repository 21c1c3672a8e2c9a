import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../contestants/contestant.ts";
import { writerWeight } from "../run/mixed-callers.ts";
import type { CycleLoad } from "../run/protocol.ts";
import { chooserOf } from "./keys.ts";
import { Ledger } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** Tasks that acquire, keep, release, and begin again at once. */
export function startCycles(session: Session, load: CycleLoad): RunningLoad {
  const ledger = new Ledger(load.tasks);
  const keyOf = chooserOf(load.keys);
  let running = true;

  async function cycle(task: number): Promise<void> {
    for (let turn = 0; running; turn += 1) {
      const key = keyOf(task);
      const writes = (task + turn) % (load.writesOneIn ?? 1) === 0;
      try {
        ledger.waits(task);
        const release = await session.acquire(key, load.ttlMs, writes);
        ledger.granted(task);
        if (load.isWatched === true)
          ledger.enters(task, writes && load.writesOneIn !== undefined ? writerWeight : 1);
        if (load.holdMs > 0) await sleep(load.holdMs);
        ledger.leaves(task);
        await release();
      } catch (error) {
        ledger.failed(task, error);
        // Lets the other tasks and the parent's messages in, should every call fail at once.
        await sleep(10);
      }
    }
  }

  const tasks = Array.from({ length: load.tasks }, (_, task) => cycle(task));
  return {
    begin: () => ledger.begin(),
    end: () => ledger.end(),
    stop: async () => {
      running = false;
      await Promise.all(tasks);
    },
  };
}
