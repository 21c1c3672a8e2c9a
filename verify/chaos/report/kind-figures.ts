import { lockKinds, type LockKind } from "../run/lock.ts";
import { capacityOf } from "../judge/rules/tenures.ts";
import { latchesOf } from "../judge/rules/latches.ts";
import { maxConcurrentWeight } from "../judge/rules/exclusion.ts";
import type { RunHistory, AttemptHistory } from "../judge/attempts.ts";

/** The figures of one kind of lock, without the requests of quiet periods. */
export interface KindFigures {
  readonly requests: number;
  readonly grants: number;
  readonly refusals: number;
  readonly losses: number;
  /** Of the grants, those to the current holder, and those to writers that became readers. */
  readonly nested: number;
  readonly downgrades: number;
}

export function figuresByKind(attempts: readonly AttemptHistory[]): Partial<Record<LockKind, KindFigures>> {
  const figures: Partial<Record<LockKind, KindFigures>> = {};
  for (const name of lockKinds) {
    const own = attempts.filter(({ lockKind, kind }) => lockKind === name && kind !== "probe");
    const granted = own.filter(({ grantedAt }) => grantedAt !== undefined);
    if (own.length > 0) {
      figures[name] = {
        requests: own.length,
        grants: granted.length,
        refusals: own.filter(({ refusal }) => refusal !== undefined).length,
        losses: granted.filter(({ lostAt }) => lostAt !== undefined).length,
        nested: granted.filter(({ kind }) => kind === "nested").length,
        downgrades: granted.filter(({ kind }) => kind === "downgrade").length,
      };
    }
  }
  return figures;
}

/** The figures of latches, in storms. */
export interface LatchFigures {
  readonly counts: number;
  readonly waits: number;
  readonly released: number;
  /** Calls of an expired latch. */
  readonly expired: number;
  /** Keys that were judged call by call, because they had one latch all the time, and how many of these latches opened. */
  readonly judged: number;
  readonly opened: number;
}

export function latchFigures(run: RunHistory): LatchFigures {
  const calls = run.latchCalls.filter(({ isProbe }) => !isProbe);
  const waits = calls.filter(({ attemptId }) => attemptId === undefined);
  const judged = latchesOf(run);
  return {
    counts: calls.length - waits.length,
    waits: waits.length,
    released: waits.filter(({ remaining }) => remaining === 0).length,
    expired: calls.filter(({ code }) => code === "latch-expired").length,
    judged: judged.length,
    opened: judged.filter((some) => some.some(({ remaining }) => remaining === 0)).length,
  };
}

/** For keys that several may hold: the largest number of concurrent readers or permits, and the limit. */
export function sharedFigures(run: RunHistory): Record<string, string> {
  const { readWrite } = run.plan.keys;
  return Object.fromEntries(
    Array.from(maxConcurrentWeight(run))
      .filter(([key]) => capacityOf(run.plan, key) > 1)
      .map(([key, most]) => [
        key,
        readWrite.includes(key) ? `${most} readers` : `${most} of ${capacityOf(run.plan, key)} permits`,
      ]),
  );
}
