import type { Client } from "../run/client.ts";
import { isLatchAction, isUse, type Schedule } from "../plan/schedule.ts";

/** Without faults a free lock is granted within this time, which is shorter than the first poll of a waiter, ms. */
const faultFreeMs = 100;
/** When the lease of a dead holder has expired, another waiter is granted the lock within this time, ms. */
export const afterExpiryMs = 1_000;
/** How long it takes until all waiters have been granted the lock, one after the other, ms. */
export const allWaitersMs = 1_000;
/** A waiter whose notification was lost polls within this time, ms. */
export const pollMs = 5_000;
const splitVoteMs = 2_000;
/** A restarted node votes again after the largest TTL plus this time, in which clients notice the restart, ms. */
const restartGuardMs = 4_000;

/** If nodes execute requests after later commands, a grant to a caller that has left ends with the late reply, ms. */
const reorderedMs = 1_000;

/** How long a lock may be free while a caller waits for it, if no message is lost, ms. */
export function faultFreeBoundMs({ scenario, nodeTimeoutMs }: Schedule): number {
  const boundMs =
    scenario === "process-death" ? afterExpiryMs : scenario === "reordered" ? reorderedMs : faultFreeMs;
  return boundMs + nodeTimeoutMs;
}

/** How long a lock may be free in the quiet period while a caller waits for it, ms. */
export function quietBoundMs(schedule: Schedule, clients: readonly Client[]): number {
  const { scenario, maxTtlMs, claimMs, engine } = schedule;
  switch (scenario) {
    case "calm":
    case "contention":
    case "reordered":
      return faultFreeBoundMs(schedule);
    case "process-death":
      return faultFreeBoundMs(schedule) + deadClientsMs(schedule, clients) + unadoptedTransfersMs(schedule);
    case "lost-inquiries":
      // A waiter with some votes requests votes again after a third of the TTL, plus up to half of that delay at random.
      return maxTtlMs / 2 + 300;
    case "lost-notifications":
      // A waiter without a notification polls. On a quorum the votes may then be split, and are requested again. Each node may also keep
      // its vote for another waiter without a notification, until that waiter's claim expires.
      return pollMs + 300 + (engine === "quorum" ? Math.max(splitVoteMs, claimMs) : 0);
    case "full-memory":
      return pollMs + 1_000; // a refused request is repeated with growing pauses
    case "storm":
      return pollMs + 1_000 + deadClientsMs(schedule, clients) + recoveryMs(schedule);
  }
}

/** How long a latch may last that a late call creates after all other latches have expired, ms. Such a latch ends by its TTL. */
export function lateLatchMs({ steps }: Schedule): number {
  const ttlsMs = steps.flatMap((step) => (isLatchAction(step) ? step.ttlMs + pollMs : []));
  return Math.max(0, ...ttlsMs) * slowestClockFactor;
}

/** Each dead client may have held the lock, one after the other. A latch has no holder. */
function deadClientsMs({ kind }: Schedule, clients: readonly Client[]): number {
  if (kind === "latch") {
    return 0;
  }
  const uses = clients.flatMap(({ isDead, uses }) => (isDead ? [...uses] : []));
  return uses.reduce((sum, { ttlMs }) => sum + ttlMs + pollMs, 0);
}

/** A transferred lease may have no client that adopts the lease. */
function unadoptedTransfersMs({ steps, maxTtlMs }: Schedule): number {
  return (
    steps.filter((step) => isUse(step) && typeof step.ending === "object").length *
    maxTtlMs *
    slowestClockFactor
  );
}

/** By how much the slowest clock stretches a delay. */
export const slowestClockFactor = 1.03;

function recoveryMs({ engine, steps, maxTtlMs, quietAt }: Schedule): number {
  const duplicateMs = steps.some(({ kind }) => kind === "duplicate") ? maxTtlMs : 0;
  if (engine === "quorum") {
    return duplicateMs + quarantineMs(steps, maxTtlMs + restartGuardMs, quietAt);
  }
  // A server whose clock was set back keeps its grants for longer.
  const backMs = steps.map((step) => (step.kind === "step node" ? Math.max(0, -step.ms) : 0));
  return backMs.reduce((sum, ms) => sum + ms, duplicateMs);
}

/** How long a node does not vote in the quiet period, because the node restarted or its clock was set, ms. */
function quarantineMs(steps: Schedule["steps"], guardedMs: number, quietAt: number): number {
  const remaining = steps.map((step) => {
    const downMs = step.kind === "restart node" ? step.downMs : step.kind === "step node" ? 0 : -Infinity;
    return step.at + downMs + guardedMs - quietAt;
  });
  return Math.max(0, ...remaining) * slowestClockFactor;
}
