import { setTimeout as pause } from "node:timers/promises";

import type { Arena } from "./arena.ts";
import type { Participant, Side } from "./participant.ts";

const ttlMs = 5_000;
/** Longer than a TTL, so that a waiter outlives any holder. */
const waitMs = 10_000;
const meanHoldMs = 4;
/** A process that polls needs a free moment. */
const meanPauseMs = 30;
const afterErrorMs = 20;

export interface ContentionResult {
  readonly turns: Readonly<Record<Side, number>>;
  /** Waits of 10 s that ended without a grant. */
  readonly unserved: Readonly<Record<Side, number>>;
}

/** Two processes of each kind compete for one key. */
export async function contend(arena: Arena, forMs: number): Promise<ContentionResult> {
  const participants = await arena.start(ttlMs, ["ours", "ours", "theirs", "theirs"]);
  const unserved = { ours: 0, theirs: 0 };
  const warm = participants.map(({ turns }) => turns);
  const until = performance.now() + forMs;
  await Promise.all(
    participants.map(async (participant) => {
      unserved[participant.side] += await takeTurns(participant, until);
    }),
  );
  await arena.end(participants);
  const turnsOf = (side: Side): number =>
    participants.reduce(
      (sum, one, index) => sum + (one.side === side ? one.turns - (warm[index] ?? 0) : 0),
      0,
    );
  return { turns: { ours: turnsOf("ours"), theirs: turnsOf("theirs") }, unserved };
}

/** @returns the number of waits that ended without a grant */
async function takeTurns(participant: Participant, until: number): Promise<number> {
  let unserved = 0;
  while (performance.now() < until) {
    const errors = participant.errors.length;
    if (await participant.acquire("contended", ttlMs, waitMs)) {
      await pause(Math.random() * 2 * meanHoldMs);
      await participant.release();
      await pause(Math.random() * 2 * meanPauseMs);
    } else if (participant.errors.length > errors) {
      await pause(afterErrorMs);
    } else {
      unserved += 1;
    }
  }
  return unserved;
}
