import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../contestants/contestant.ts";
import { writerWeight } from "../run/overlap.ts";
import type { CycleLoad } from "../run/protocol.ts";
import { chooserOf } from "./keys.ts";
import { Recorder } from "./recorder.ts";
import type { RunningLoad } from "./running-load.ts";

/** Starts tasks that acquire, hold and release without pause. */
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
        // If every call failed immediately, a loop without a pause would block the other tasks and the messages of the parent.
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
