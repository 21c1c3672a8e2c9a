import type { Session } from "../contestants/contestant.ts";
import type { WaitLoad } from "../run/protocol.ts";
import { Recorder } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** A single acquisition, which is kept. */
export function startWaiting(session: Session, { key, ttlMs }: WaitLoad): RunningLoad {
  const recorder = new Recorder(1);

  async function wait(): Promise<void> {
    try {
      recorder.waiting(0);
      await session.acquire(key, ttlMs, true);
      recorder.granted(0);
    } catch (error) {
      recorder.failed(0, error);
    }
  }

  const waiting = wait();
  return {
    begin: () => recorder.begin(),
    end: () => recorder.end(),
    stop: () => waiting,
  };
}
