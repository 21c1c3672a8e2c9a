import { setTimeout as sleep } from "node:timers/promises";
import type { HeldLock, Session } from "../contestants/contestant.ts";
import type { HoldLoad } from "../run/protocol.ts";
import { Recorder } from "./recorder.ts";
import type { RunningLoad } from "./running-load.ts";

const intervalMs = 10;

/**
 * Acquires leases that the library renews. The acquisitions are spread evenly over one TTL, because leases acquired together are
 * renewed together. A window would then contain a burst of renewals, or none.
 */
export async function startHolding(session: Session, { keys, ttlMs }: HoldLoad): Promise<RunningLoad> {
  if (!session.hold) throw new Error("has no renewal of its own");
  const { hold } = session;
  const acquisitions: Promise<HeldLock>[] = [];
  const startedAt = performance.now();

  while (acquisitions.length < keys.length) {
    const elapsedMs = performance.now() - startedAt;
    const due = Math.ceil((elapsedMs / ttlMs) * keys.length);
    for (const key of keys.slice(acquisitions.length, due)) acquisitions.push(hold(key, ttlMs));
    await sleep(intervalMs);
  }
  const leases = await Promise.all(acquisitions);

  const recorder = new Recorder(0);
  return {
    begin: () => recorder.begin(),
    end: () => recorder.end(leases.filter((lease) => lease.isLost()).length),
    stop: async () => {},
  };
}
