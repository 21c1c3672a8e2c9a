import type { Session } from "../contestants/contestant.ts";
import type { UseLoad } from "../run/protocol.ts";
import { Ledger } from "./ledger.ts";
import { inPortions } from "./portions.ts";
import type { RunningLoad } from "./running-load.ts";

/** Keys that are used once, each by an acquisition and a release. */
export async function useOnce(session: Session, { keys, ttlMs }: UseLoad): Promise<RunningLoad> {
  await inPortions(keys, async (key) => {
    const release = await session.acquire(key, ttlMs, true);
    await release();
  });
  const ledger = new Ledger(0);
  return { begin: () => ledger.begin(), end: () => ledger.end(), stop: async () => {} };
}
