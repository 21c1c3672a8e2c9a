import type { Session } from "../contestants/contestant.ts";
import type { WaitLoad } from "../run/protocol.ts";
import { Recorder } from "./recorder.ts";
import type { RunningLoad } from "./running-load.ts";

/** Starts one acquisition, whose lease is never released. */
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
