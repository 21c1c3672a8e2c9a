import { lockNames, type LockName } from "./lock.ts";
import { capacityOf } from "./rules/tenures.ts";
import { mostAtOnce } from "./rules/exclusion.ts";
import type { RunStory, Story } from "./stories.ts";

/** What happened to the locks of one kind, without what was asked for in peace. */
export interface KindFigures {
  readonly asks: number;
  readonly grants: number;
  readonly refusals: number;
  readonly losses: number;
  /** Of the grants: by who held it already, and of writers that became readers. */
  readonly nested: number;
  readonly downgrades: number;
}

export function figuresByKind(stories: readonly Story[]): Partial<Record<LockName, KindFigures>> {
  const figures: Partial<Record<LockName, KindFigures>> = {};
  for (const name of lockNames) {
    const own = stories.filter(({ as, kind }) => as === name && kind !== "probe");
    const granted = own.filter(({ grantedAt }) => grantedAt !== undefined);
    if (own.length > 0) {
      figures[name] = {
        asks: own.length,
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

/** Of keys that several may hold: how many readers or permits were valid at once, and how many there are. */
export function sharing(run: RunStory): Record<string, string> {
  const { readWrite } = run.plan.keys;
  return Object.fromEntries(
    Array.from(mostAtOnce(run))
      .filter(([key]) => capacityOf(run.plan, key) > 1)
      .map(([key, most]) => [
        key,
        readWrite.includes(key) ? `${most} readers` : `${most} of ${capacityOf(run.plan, key)} permits`,
      ]),
  );
}
