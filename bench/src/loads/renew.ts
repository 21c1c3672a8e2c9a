import type { Session } from "../contestants/contestant.ts";
import type { RenewLoad } from "../run/protocol.ts";
import { Recorder } from "./recorder.ts";
import { inBatches } from "./batches.ts";
import type { RunningLoad } from "./running-load.ts";

/** Acquires leases that are never released. The library renews them, if it has a renewal. */
export async function startRenewing(session: Session, { keys, ttlMs }: RenewLoad): Promise<RunningLoad> {
  const { hold } = session;
  const acquire = (key: string): Promise<unknown> =>
    hold ? hold(key, ttlMs) : session.acquire(key, ttlMs, true);
  const leases = await inBatches(keys, acquire);
  const recorder = new Recorder(0);
  return { ready: leases, begin: () => recorder.begin(), end: () => recorder.end(), stop: async () => {} };
}
