import type { Session } from "../contestants/contestant.ts";
import type { QueueLoad } from "../run/protocol.ts";
import { Recorder } from "./recorder.ts";
import type { RunningLoad } from "./running-load.ts";

/**
 * Starts tasks that wait for keys which another process holds. A grant counts as a failure, because the holder never releases these
 * keys.
 */
export function startQueue(session: Session, { keys, waiters, ttlMs }: QueueLoad): RunningLoad {
  const recorder = new Recorder(waiters);

  async function wait(task: number): Promise<void> {
    try {
      recorder.waiting(task);
      await session.acquire(keys[task % keys.length] ?? "", ttlMs, true);
      recorder.failed(task, new Error("was granted a lock that another process holds"));
    } catch (error) {
      recorder.failed(task, error);
    }
  }

  for (let task = 0; task < waiters; task += 1) void wait(task);
  return {
    begin: () => recorder.begin(),
    end: () => recorder.end(),
    stop: async () => {},
  };
}
