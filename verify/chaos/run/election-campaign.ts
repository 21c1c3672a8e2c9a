import { setTimeout as pause } from "node:timers/promises";

import { aboutOf, type Errand } from "./task.ts";
import type { Office } from "./client-state.ts";
import { use } from "./critical-section.ts";

const longestStepMs = 100;

/** Stands for election, leads step by step as long as it may, and resigns. */
export async function lead(office: Office, { lock, ttlMs, waitMs, renew, holdMs }: Errand): Promise<void> {
  const { locks, recorder, chance } = office;
  const election = locks.election(lock.key);
  const about = { ...aboutOf(lock), kind: "acquire", waitMs } as const;
  const term = await recorder.ask(about, () => election.campaign({ ttlMs, waitMs, renew }));
  if (!term) {
    return;
  }
  const until = performance.now() + holdMs;
  while (performance.now() < until && term.lease.remainingMs() > 0) {
    await use(office, term, chance.between(0, longestStepMs));
    await pause(chance.between(0, longestStepMs));
  }
  term.releasing();
  await term.released(election.resign());
}
