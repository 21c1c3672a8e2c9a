import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../contestants/contestant.ts";
import { writerWeight } from "../run/mixed-callers.ts";
import type { CycleLoad } from "../run/protocol.ts";
import { chooserOf } from "./keys.ts";
import { Recorder } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** Tasks that acquire, keep, release, and begin again at once. */
export function startCycles(session: Session, load: CycleLoad): RunningLoad {
  const recorder = new Recorder(load.tasks);
  const keyOf = chooserOf(load.keys);
  let running = true;

  async function cycle(task: number): Promise<void> {
    for (let turn = 0; running; turn += 1) {
      const key = keyOf(task);
      const writes = (task + turn) % (load.writesOneIn ?? 1) === 0;
      try {
        recorder.waiting(task);
        const release = await session.acquire(key, load.ttlMs, writes);
        recorder.granted(task);
        if (load.isWatched === true)
          recorder.entered(task, writes && load.writesOneIn !== undefined ? writerWeight : 1);
        if (load.holdMs > 0) await sleep(load.holdMs);
        recorder.exited(task);
        await release();
      } catch (error) {
        recorder.failed(task, error);
        // Lets the other tasks and the parent's messages in, should every call fail at once.
        await sleep(10);
      }
    }
  }

  const tasks = Array.from({ length: load.tasks }, (_, task) => cycle(task));
  return {
    begin: () => recorder.begin(),
    end: () => recorder.end(),
    stop: async () => {
      running = false;
      await Promise.all(tasks);
    },
  };
}
