import { SeededRandom } from "./dice.ts";
import { isUse, type ScheduleFrame, type Step, type Use } from "./schedule.ts";

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function holdRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 2 ** 27);
}

/** Gives some uses of some schedules a shortest hold, so that their early release keeps the grant. */
export function withShortestHolds(
  steps: readonly Step[],
  frame: ScheduleFrame,
  random: SeededRandom,
): readonly Step[] {
  if (!random.happens(0.2)) {
    return steps;
  }
  return steps.map((step) => {
    const isDrawn = random.happens(0.4);
    const minHoldMs = random.integer(1, random.pick([50, 300, frame.maxTtlMs]));
    return isUse(step) && isDrawn && mayBeKept(step) ? { ...step, minHoldMs } : step;
  });
}

/** A lease that is shared, transferred, downgraded or resigned has no early release of its own. */
function mayBeKept({ kind, mode, attemptId, ending, maxHoldMs }: Use): boolean {
  const isPlain = mode === undefined || mode.kind === "permits" || mode.kind === "several";
  const isUndivided =
    mode?.kind === "reader" || (mode?.kind === "writer" && mode.downgradeAtMs === undefined);
  return (
    kind !== "with" &&
    (isPlain || isUndivided) &&
    attemptId === undefined &&
    ending === undefined &&
    maxHoldMs === undefined
  );
}
