import type { Session } from "../contestants/contestant.ts";
import type { WaitLoad } from "../run/protocol.ts";
import { Ledger } from "./ledger.ts";
import type { RunningLoad } from "./running-load.ts";

/** A single acquisition, which is kept. */
export function startWaiting(session: Session, { key, ttlMs }: WaitLoad): RunningLoad {
  const ledger = new Ledger(1);

  async function wait(): Promise<void> {
    try {
      ledger.waits(0);
      await session.acquire(key, ttlMs, true);
      ledger.granted(0);
    } catch (error) {
      ledger.failed(0, error);
    }
  }

  const waiting = wait();
  return {
    begin: () => ledger.begin(),
    end: () => ledger.end(),
    stop: () => waiting,
  };
}
