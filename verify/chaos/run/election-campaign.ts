import { setTimeout as pause } from "node:timers/promises";

import { requestOf, type LockTask } from "./task.ts";
import type { ClientState } from "./client-state.ts";
import { useResource } from "./critical-section.ts";

const maxLeadershipStepMs = 100;

/** Campaigns for an election, leads in steps during the term, and resigns. */
export async function runCampaign(
  client: ClientState,
  { lock, ttlMs, waitMs, renew, holdMs }: LockTask,
): Promise<void> {
  const { locks, recorder, random } = client;
  const election = locks.election(lock.key);
  const about = { ...requestOf(lock), kind: "acquire", waitMs } as const;
  const term = await recorder.acquire(about, () => election.campaign({ ttlMs, waitMs, renew }));
  if (!term) {
    return;
  }
  const until = performance.now() + holdMs;
  while (performance.now() < until && term.lease.remainingMs() > 0) {
    await useResource(client, term, random.between(0, maxLeadershipStepMs));
    await pause(random.between(0, maxLeadershipStepMs));
  }
  term.releasing();
  await term.released(election.resign());
}
