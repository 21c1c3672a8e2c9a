import { setTimeout as pause } from "node:timers/promises";

import { checkNames, type CheckName } from "../pairs.ts";
import type { Arena } from "./arena.ts";
import type { Grant, Participant, Side } from "./participant.ts";
import { monotonicMs } from "../workers/node/serve.ts";

const ttlMs = 2_000;
const waitMs = 10_000;
const servedWithinMs = ttlMs + 1_000;
const untilQueuedMs = 300;

export interface CheckResult {
  readonly check: CheckName;
  /** The time from the fault to the grant of the other side's waiter, in ms; null: the waiter was not served. */
  readonly servedMs: number | null;
  /** Why the check failed. null: it passed. */
  readonly failure: string | null;
}

const checks: Readonly<Record<CheckName, (arena: Arena, key: string) => Promise<CheckOutcome>>> = {
  "their-killed-holder": (arena, key) => holderFails(arena, key, { of: "theirs", by: "kill" }),
  "our-killed-holder": (arena, key) => holderFails(arena, key, { of: "ours", by: "kill" }),
  "their-frozen-holder": (arena, key) => holderFails(arena, key, { of: "theirs", by: "freeze" }),
  "our-frozen-holder": (arena, key) => holderFails(arena, key, { of: "ours", by: "freeze" }),
  "our-killed-waiter": (arena, key) => waiterDies(arena, key, "ours"),
  "their-killed-waiter": (arena, key) => waiterDies(arena, key, "theirs"),
};

type CheckOutcome = Omit<CheckResult, "check">;

export async function checkFaults(arena: Arena): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checkNames) {
    results.push({ check, ...(await checks[check](arena, check)) });
  }
  return results;
}

/** A holder is killed or frozen, and a waiter of the other side must be served. A thawed holder must not end the lock of the waiter. */
async function holderFails(
  arena: Arena,
  key: string,
  { of: side, by }: { readonly of: Side; readonly by: "kill" | "freeze" },
): Promise<CheckOutcome> {
  const participants = await arena.start(ttlMs, [side, otherSide(side)]);
  const [holder, waiter] = participants as [Participant, Participant];
  try {
    if (!(await holder.acquire(key, ttlMs, waitMs))) {
      return failed("the holder did not get the free lock");
    }
    const waiting = waiter.acquire(key, ttlMs, waitMs);
    await pause(untilQueuedMs);
    const failedAt = monotonicMs();
    holder.worker[by]();
    const outcome = outcomeOf(await waiting, failedAt);
    if (outcome.failure !== null) {
      return outcome;
    }
    return by === "freeze" ? { ...outcome, failure: await thaw(holder, waiter) } : outcome;
  } finally {
    await arena.end(participants);
  }
}

/** The thawed holder releases its lost lock. @returns why the waiter's lock did not survive, or null */
async function thaw(holder: Participant, waiter: Participant): Promise<string | null> {
  holder.worker.thaw();
  await holder.release();
  if ((await waiter.extend(ttlMs)) === false) {
    return "the thawed holder ended the lock of its successor";
  }
  const { wasHeld } = await waiter.release();
  return wasHeld ? null : "the thawed holder ended the lock of its successor";
}

/** Two processes of a side wait, and the first is killed. The second, and a waiter of the other side, must be served after the release. */
async function waiterDies(arena: Arena, key: string, side: Side): Promise<CheckOutcome> {
  const participants = await arena.start(ttlMs, [otherSide(side), side, side]);
  const [holder, victim, other] = participants as [Participant, Participant, Participant];
  try {
    if (!(await holder.acquire(key, ttlMs, waitMs))) {
      return failed("the holder did not get the free lock");
    }
    victim.acquire(key, ttlMs, waitMs).catch(() => undefined);
    await pause(untilQueuedMs);
    const waiting = other.acquire(key, ttlMs, waitMs);
    await pause(untilQueuedMs);
    victim.worker.kill();
    const { sentAt } = await holder.release();
    return outcomeOf(await waiting, sentAt);
  } finally {
    await arena.end(participants);
  }
}

function outcomeOf(grant: Grant | null, failedAt: number): CheckOutcome {
  if (grant === null) {
    return failed(`not served in ${waitMs / 1_000} s`);
  }
  const servedMs = grant.at - failedAt;
  const failure =
    servedMs > servedWithinMs ? `served after ${Math.round(servedMs)} ms, of ${servedWithinMs}` : null;
  return { servedMs, failure };
}

function failed(failure: string): CheckOutcome {
  return { servedMs: null, failure };
}

function otherSide(side: Side): Side {
  return side === "ours" ? "theirs" : "ours";
}
