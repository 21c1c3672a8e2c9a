import type { Session } from "../contestants/contestant.ts";
import type { QueueLoad } from "../run/protocol.ts";
import { Recorder } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** Tasks that wait for what somebody keeps. A grant is a failure: who was granted it did not have to wait. */
export function startQueue(session: Session, { keys, waiters, ttlMs }: QueueLoad): RunningLoad {
  const recorder = new Recorder(waiters);

  async function wait(task: number): Promise<void> {
    try {
      recorder.waiting(task);
      await session.acquire(keys[task % keys.length] ?? "", ttlMs, true);
      recorder.failed(task, new Error("was granted what another holds"));
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
