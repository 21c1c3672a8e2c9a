import type { Violation } from "../rule.ts";
import { phaseAt, stalledMs, type LatchCall, type ProcessHistory, type RunHistory } from "../attempts.ts";
import { hasFailover } from "./failovers.ts";

/** The largest difference between the clocks of the servers and of the checker. */
const clockMs = 2_000;
/** A waiter polls within this time, even if messages are lost. */
const pollMs = 5_000;

/** Each attempt with a reply counts, and no attempt counts twice. A key is judged only if all its calls concerned one latch. */
export function checkLatchCounts(run: RunHistory): Violation[] {
  return latchesOf(run).flatMap((calls) =>
    calls.flatMap((call): Violation[] => {
      const { attemptId, remaining, settledAt, requestedAt, count, key } = call;
      if (attemptId === undefined || remaining === undefined || settledAt === undefined) {
        return [];
      }
      const asked = attemptsOf(calls.filter((other) => other.requestedAt < settledAt));
      const counted = attemptsOf(
        calls.filter((other) => other.remaining !== undefined && endOf(other) < requestedAt),
      );
      const [least, most] = [count - asked.size, count - counted.add(attemptId).size];
      return remaining < Math.max(0, least) || remaining > Math.max(0, most)
        ? [
            {
              rule: "count",
              at: settledAt,
              key,
              text: `${callName(call)} got the remaining count ${remaining}, expected ${Math.max(0, least)} to ${Math.max(0, most)}`,
            },
          ]
        : [];
    }),
  );
}

/** A latch opens with the last count, stays open until its TTL has passed, and then reports its expiry to objects that knew the latch. */
export function checkLatches(run: RunHistory): Violation[] {
  return [
    ...latchesOf(run).flatMap((calls) => [...openedEarly(calls), ...expiredEarly(calls)]),
    ...usedAfterExpiry(run),
    ...releaseDelays(run),
  ];
}

/** In a quiet period every process counts, and every waiter returns. */
export function checkQuietPeriodLatches({ latchCalls }: RunHistory): Violation[] {
  return latchCalls.flatMap((call) =>
    call.isProbe && call.code !== undefined
      ? [
          {
            rule: "quiet-period" as const,
            at: call.requestedAt,
            key: call.key,
            text: `${callName(call)} was refused in a quiet period: ${call.code}`,
          },
        ]
      : [],
  );
}

function openedEarly(calls: readonly LatchCall[]): Violation[] {
  return calls.flatMap((call) => {
    const at = call.settledAt ?? Infinity;
    const asked = attemptsOf(calls.filter((other) => other.requestedAt < at));
    const isEarly = call.attemptId === undefined && call.remaining !== undefined && asked.size < call.count;
    const text = `${callName(call)} returned after ${asked.size} of ${call.count} countdowns were requested`;
    return isEarly ? [{ rule: "latch" as const, at, key: call.key, text }] : [];
  });
}

function expiredEarly(calls: readonly LatchCall[]): Violation[] {
  return calls.flatMap((call) =>
    call.code === "latch-expired"
      ? [
          {
            rule: "latch" as const,
            at: endOf(call),
            key: call.key,
            text: `${callName(call)} was reported as expired before the end of its TTL`,
          },
        ]
      : [],
  );
}

/** An object of an expired latch gets no other latch: after its first reply a `Latch` lasts at most its TTL. */
function usedAfterExpiry(run: RunHistory): Violation[] {
  const { latchCalls, faults } = run;
  const firsts = new Map<string, number>();
  const found: Violation[] = [];
  for (const call of byRequestTime(latchCalls)) {
    const view = `${call.process} ${call.handle}`;
    const first = firsts.get(view);
    if (call.remaining === undefined) {
      continue;
    }
    const isClockSet = faults.some(
      ({ kind, from }) =>
        kind.includes("clock") && from < call.requestedAt && from >= (first ?? 0) - call.ttlMs,
    );
    const isLate = first !== undefined && call.requestedAt > first + call.ttlMs + clockMs;
    if (isLate && !isClockSet) {
      const text = `${callName(call)} got a reply after its latch had expired`;
      found.push({ rule: "latch", at: endOf(call), key: call.key, text });
    }
    firsts.set(view, Math.min(first ?? Infinity, endOf(call)));
  }
  return found;
}

/** In a quiet period a waiter of an open latch returns at its next poll at the latest. */
function releaseDelays(run: RunHistory): Violation[] {
  return latchesOf(run).flatMap((calls) => {
    const openAt = Math.min(...calls.filter(({ remaining }) => remaining === 0).map(endOf));
    return calls.flatMap((call) => {
      const quietFrom = phaseAt(run, endOf(call))?.from;
      if (call.attemptId !== undefined || call.settledAt === undefined || quietFrom === undefined) {
        return [];
      }
      const from = Math.max(call.requestedAt, openAt, quietFrom);
      const process = run.processes.get(call.process) as ProcessHistory;
      const lateMs = endOf(call) - from - stalledMs(process, from, endOf(call));
      const text = `${callName(call)} still waited ${lateMs.toFixed(0)} ms after the latch opened, in a quiet period`;
      return lateMs > pollMs + run.plan.bounds.settleMs
        ? [{ rule: "latch" as const, at: endOf(call), key: call.key, text }]
        : [];
    });
  });
}

/** The calls of each key that has only one latch: all calls are within one TTL, and there is no failover. */
export function latchesOf(run: RunHistory): LatchCall[][] {
  const byKey = new Map<string, LatchCall[]>();
  for (const call of run.latchCalls) {
    const calls = byKey.get(call.key) ?? [];
    calls.push(call);
    byKey.set(call.key, calls);
  }
  return Array.from(byKey.values()).filter((calls) => {
    const first = Math.min(...calls.map(({ requestedAt }) => requestedAt));
    const last = Math.max(...calls.map((call) => call.settledAt ?? call.requestedAt + call.waitMs));
    const { key, ttlMs } = calls[0] as LatchCall;
    return last < first + ttlMs - clockMs && !hasFailover(run, key, first, last);
  });
}

function byRequestTime(calls: readonly LatchCall[]): LatchCall[] {
  return [...calls].sort((one, other) => one.requestedAt - other.requestedAt);
}

function attemptsOf(calls: readonly LatchCall[]): Set<string> {
  return new Set(calls.flatMap(({ attemptId }) => attemptId ?? []));
}

function endOf({ settledAt }: LatchCall): number {
  return settledAt ?? Infinity;
}

export function callName({ process, call, attemptId }: LatchCall): string {
  return `${process}#latch ${call} (${attemptId ?? "waiting"})`;
}
