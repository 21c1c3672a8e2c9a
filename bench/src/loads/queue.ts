import type { Session } from "../contestants/contestant.ts";
import type { QueueLoad } from "../run/protocol.ts";
import { Ledger } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** Tasks that wait for what somebody keeps. A grant is a failure: who was granted it did not have to wait. */
export function startQueue(session: Session, { keys, waiters, ttlMs }: QueueLoad): RunningLoad {
  const ledger = new Ledger(waiters);

  async function wait(task: number): Promise<void> {
    try {
      ledger.waits(task);
      await session.acquire(keys[task % keys.length] ?? "", ttlMs, true);
      ledger.failed(task, new Error("was granted what another holds"));
    } catch (error) {
      ledger.failed(task, error);
    }
  }

  for (let task = 0; task < waiters; task += 1) void wait(task);
  return {
    begin: () => ledger.begin(),
    end: () => ledger.end(),
    stop: async () => {},
  };
}
