import type { Session } from "../contestants/contestant.ts";
import type { KeepLoad } from "../run/protocol.ts";
import { Ledger } from "./ledger.ts";
import { inPortions } from "./portions.ts";
import type { RunningLoad } from "./running-load.ts";

/** Leases that are held for ever, by the way in which the library renews them, where it does. */
export async function startKeeping(session: Session, { keys, ttlMs }: KeepLoad): Promise<RunningLoad> {
  const { hold } = session;
  const take = (key: string): Promise<unknown> =>
    hold ? hold(key, ttlMs) : session.acquire(key, ttlMs, true);
  const kept = await inPortions(keys, take);
  const ledger = new Ledger(0);
  return { kept, begin: () => ledger.begin(), end: () => ledger.end(), stop: async () => {} };
}
