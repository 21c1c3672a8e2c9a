import type { Session } from "../contestants/contestant.ts";
import type { UseLoad } from "../run/protocol.ts";
import { Recorder } from "./recorder.ts";
import { inBatches } from "./batches.ts";
import type { RunningLoad } from "./running-load.ts";

/** Acquires and releases each key once. */
export async function useOnce(session: Session, { keys, ttlMs }: UseLoad): Promise<RunningLoad> {
  await inBatches(keys, async (key) => {
    const release = await session.acquire(key, ttlMs, true);
    await release();
  });
  const recorder = new Recorder(0);
  return { begin: () => recorder.begin(), end: () => recorder.end(), stop: async () => {} };
}
