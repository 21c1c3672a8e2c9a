import { allReaders, type LockMode } from "../plan/lock-mode.ts";
import { isLatchAction, isUse, type Kind, type Schedule, type Step, type Use } from "../plan/schedule.ts";

/** The requests of a client in the quiet period: every key, in a mode of the schedule's kind. */
export function quietPeriodUses({ kind, steps, maxTtlMs }: Schedule, client: number): Use[] {
  if (kind === "latch") {
    return [];
  }
  const keys = keysIn(steps);
  const requested = kind === "all" ? [keys[0] ?? "a"] : keys;
  return requested.map((key, index): Use => {
    const mode = modeOf(kind, { keys, turn: client + index });
    return {
      kind: "acquire",
      client,
      key,
      ...(mode ? { mode } : {}),
      ttlMs: maxTtlMs,
      waitMs: null,
      renew: true,
      holdMs: 0,
    };
  });
}

/** Every key of a schedule, in sorted order. */
export function keysIn(steps: readonly Step[]): readonly string[] {
  const keys = steps.flatMap((step) => {
    if (!isUse(step)) {
      return isLatchAction(step) ? [step.key] : [];
    }
    return step.mode?.kind === "several" ? step.mode.keys : [step.key];
  });
  return [...new Set(keys)].sort();
}

/** Requests share the key in every second turn, and are exclusive in the other turns. */
function modeOf(kind: Kind, { keys, turn }: { keys: readonly string[]; turn: number }): LockMode | undefined {
  const takesAll = turn % 2 === 0;
  switch (kind) {
    case "mutex":
    case "latch":
      return undefined;
    case "read-write":
      return { kind: takesAll ? "writer" : "reader" };
    case "semaphore":
      return { kind: "permits", permits: takesAll ? allReaders : 1 }; // reduced to the limit by the caller
    case "all":
      return {
        kind: "several",
        keys: [...keys.slice(turn % keys.length), ...keys.slice(0, turn % keys.length)],
      };
    case "reentrant":
      return { kind: "nested", depth: 0, branches: 1 };
    case "election":
      return { kind: "candidate" };
  }
}
