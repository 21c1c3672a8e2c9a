import type { Session } from "../contestants/contestant.ts";
import type { RenewLoad } from "../run/protocol.ts";
import { Recorder } from "./ledger.ts";
import { inBatches } from "./portions.ts";
import type { RunningLoad } from "./running-load.ts";

/** Leases that are held for ever, by the way in which the library renews them, where it does. */
export async function startRenewing(session: Session, { keys, ttlMs }: RenewLoad): Promise<RunningLoad> {
  const { hold } = session;
  const acquire = (key: string): Promise<unknown> =>
    hold ? hold(key, ttlMs) : session.acquire(key, ttlMs, true);
  const leases = await inBatches(keys, acquire);
  const recorder = new Recorder(0);
  return { ready: leases, begin: () => recorder.begin(), end: () => recorder.end(), stop: async () => {} };
}
