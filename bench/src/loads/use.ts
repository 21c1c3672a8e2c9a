import type { Session } from "../contestants/contestant.ts";
import type { UseLoad } from "../run/protocol.ts";
import { Recorder } from "./ledger.ts";
import { inBatches } from "./portions.ts";
import type { RunningLoad } from "./running-load.ts";

/** Keys that are used once, each by an acquisition and a release. */
export async function useOnce(session: Session, { keys, ttlMs }: UseLoad): Promise<RunningLoad> {
  await inBatches(keys, async (key) => {
    const release = await session.acquire(key, ttlMs, true);
    await release();
  });
  const recorder = new Recorder(0);
  return { begin: () => recorder.begin(), end: () => recorder.end(), stop: async () => {} };
}
