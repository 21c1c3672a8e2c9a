import type { Client } from "../run/client.ts";
import { isLatchAction, isUse, type Schedule } from "../plan/schedule.ts";

/** Where nothing goes wrong a free lock is granted this soon, ms: before anybody asks again by himself. */
const faultFreeMs = 100;
/** When the lease of who died is over somebody else has it within this, ms. */
export const afterExpiryMs = 1_000;
/** All who wait get it in turn. */
export const allWaitersMs = 1_000;
/** Waiters whose messages were lost ask again within 5 s. */
export const pollMs = 5_000;
const splitVoteMs = 2_000;
/** What a node adds to the largest TTL before it votes again, and until that is noticed. */
const restartGuardMs = 4_000;

/** How long a lock may be free where nothing goes wrong, while somebody waits for it, ms. */
export function faultFreeBoundMs({ scenario, nodeTimeoutMs }: Schedule): number {
  return (scenario === "process-death" ? afterExpiryMs : faultFreeMs) + nodeTimeoutMs;
}

/** How long a lock may be free in peace while somebody waits for it, ms. */
export function quietBoundMs(schedule: Schedule, clients: readonly Client[]): number {
  const { scenario, maxTtlMs, claimMs, engine } = schedule;
  switch (scenario) {
    case "calm":
    case "contention":
      return faultFreeBoundMs(schedule);
    case "process-death":
      return faultFreeBoundMs(schedule) + deadClientsMs(schedule, clients) + unadoptedTransfersMs(schedule);
    case "lost-inquiries":
      return maxTtlMs / 2 + 300; // who has some votes asks again after a third of the TTL, and half of that at random
    case "lost-notifications":
      // Who is not told asks by himself. On a quorum the votes may be split then, and are asked for again; and nodes may each keep
      // theirs for another waiter, who was not told of it, until his window to claim it is over.
      return pollMs + 300 + (engine === "quorum" ? Math.max(splitVoteMs, claimMs) : 0);
    case "storm":
      return pollMs + 1_000 + deadClientsMs(schedule, clients) + recoveryMs(schedule);
  }
}

/** Who is told of nothing for a while may begin a latch when those that others open are over: it ends by itself. */
export function lateLatchMs({ steps }: Schedule): number {
  const ttlsMs = steps.flatMap((step) => (isLatchAction(step) ? step.ttlMs + pollMs : []));
  return Math.max(0, ...ttlsMs) * slowestClockFactor;
}

/** Each of the dead may have had the lock, one after the other; nobody has a latch. */
function deadClientsMs({ kind }: Schedule, clients: readonly Client[]): number {
  if (kind === "latch") {
    return 0;
  }
  const uses = clients.flatMap(({ isDead, uses }) => (isDead ? [...uses] : []));
  return uses.reduce((sum, { ttlMs }) => sum + ttlMs + pollMs, 0);
}

/** Nobody may be left to adopt what is given. */
function unadoptedTransfersMs({ steps, maxTtlMs }: Schedule): number {
  return (
    steps.filter((step) => isUse(step) && typeof step.ending === "object").length *
    maxTtlMs *
    slowestClockFactor
  );
}

/** The slowest clock that there is. */
export const slowestClockFactor = 1.03;

function recoveryMs({ engine, steps, maxTtlMs, quietAt }: Schedule): number {
  const duplicateMs = steps.some(({ kind }) => kind === "duplicate") ? maxTtlMs : 0;
  if (engine === "quorum") {
    return duplicateMs + quarantineMs(steps, maxTtlMs + restartGuardMs, quietAt);
  }
  // One server keeps what it has for longer where its clock was set back.
  const backMs = steps.map((step) => (step.kind === "step node" ? Math.max(0, -step.ms) : 0));
  return backMs.reduce((sum, ms) => sum + ms, duplicateMs);
}

/** How long some node does not vote yet in peace, as it restarted or its clock was set. */
function quarantineMs(steps: Schedule["steps"], guardedMs: number, peaceAt: number): number {
  const remaining = steps.map((step) => {
    const downMs = step.kind === "restart node" ? step.downMs : step.kind === "step node" ? 0 : -Infinity;
    return step.at + downMs + guardedMs - peaceAt;
  });
  return Math.max(0, ...remaining) * slowestClockFactor;
}
