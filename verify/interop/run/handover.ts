import { setTimeout as pause } from "node:timers/promises";

import type { Arena } from "./arena.ts";
import type { Participant, Side } from "./participant.ts";

const ttlMs = 5_000;
const waitMs = 15_000;
/** Uneven and longer than each polling interval, so that the release does not favour a phase of the polls. */
const shortestHoldMs = 150;
const longestHoldMs = 650;

/** The times from the call of a release to the grant of the other kind's waiter, in ms, by the side of the waiter. */
export interface HandoverResult {
  readonly times: Readonly<Record<Side, readonly number[]>>;
  /** Waits of 15 s that ended without a grant. */
  readonly unserved: Readonly<Record<Side, number>>;
}

/** One process of each kind holds the lock in turn, while the other waits. */
export async function measureHandovers(arena: Arena, rounds: number): Promise<HandoverResult> {
  const participants = await arena.start(ttlMs, ["ours", "theirs"]);
  const [ours, theirs] = participants as [Participant, Participant];
  const times = { ours: [] as number[], theirs: [] as number[] };
  const unserved = { ours: 0, theirs: 0 };
  let [holder, waiter] = [theirs, ours];
  await acquire(holder);
  for (let round = 0; round < 2 * rounds; round += 1) {
    const waiting = waiter.acquire("handed-over", ttlMs, waitMs);
    await pause(shortestHoldMs + Math.random() * (longestHoldMs - shortestHoldMs));
    const { sentAt } = await holder.release();
    const grant = await waiting;
    if (grant === null) {
      unserved[waiter.side] += 1;
      await acquire(waiter);
    } else {
      times[waiter.side].push(grant.at - sentAt);
    }
    [holder, waiter] = [waiter, holder];
  }
  await holder.release();
  await arena.end(participants);
  return { times, unserved };
}

/** Acquires the free lock. */
async function acquire(participant: Participant): Promise<void> {
  if (!(await participant.acquire("handed-over", ttlMs, waitMs))) {
    throw new Error(
      `${participant.name} did not get the free lock: ${participant.errors.at(-1) ?? "no error"}`,
    );
  }
}
