import { SeededRandom } from "./dice.ts";
import { isUse, type FaultScenario, type ScheduleFrame, type Step } from "./schedule.ts";

/** A generator of its own, as for sleeps. */
export function fullMemoryRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 8 * 2 ** 28);
}

/** The probability that servers have full memory for a time, in a storm, and in a schedule without other faults. */
const stormProbability = 0.2;
const calmProbability = 0.35;
/** When the quiet period of a schedule without other faults begins, ms: after the longest holds. */
const quietAt = 6_000;
/** How many leases of such a schedule are held for longer than their TTL. */
const maxLongHolds = 3;

interface FullMemory {
  readonly steps: readonly Step[];
  readonly frame: { readonly scenario?: FaultScenario; readonly quietAt?: number };
}

/**
 * Plans servers whose memory is full for a time: they refuse commands that may need memory, and nothing else. Without other faults some
 * leases are held for longer than their TTL in this time, and no renewal, release, downgrade or adoption may fail.
 */
export function withFullMemory(
  steps: readonly Step[],
  frame: ScheduleFrame,
  random: SeededRandom,
): FullMemory {
  const isStorm = frame.scenario === "storm";
  const isAlone = frame.scenario === "calm" && frame.kind !== "latch";
  const probability = isStorm ? stormProbability : isAlone ? calmProbability : 0;
  if (frame.engine === "memory" || !random.happens(probability)) {
    return { steps, frame: {} };
  }
  return isStorm
    ? { steps: [...steps, ...planTimes(frame, frame.quietAt, random)], frame: {} }
    : {
        steps: [...withLongHolds(steps, random), ...planTimes(frame, frame.quietAt, random)],
        frame: { scenario: "full-memory", quietAt },
      };
}

function planTimes({ nodes }: ScheduleFrame, until: number, random: SeededRandom): Step[] {
  return Array.from({ length: random.integer(1, 3) }, () => {
    const [at, forMs] = [random.between(0, until * 0.8), random.between(200, 3_000)];
    const isEach = random.happens(0.6);
    const full = nodes.flatMap((_, node) => (isEach || random.happens(0.5) ? [node] : []));
    return full.map((node): Step => ({ at, kind: "fill memory", node, forMs }));
  }).flat();
}

function withLongHolds(steps: readonly Step[], random: SeededRandom): readonly Step[] {
  let count = 0;
  return steps.map((step) => {
    const isDrawn = random.happens(0.4);
    const ttlMs = random.integer(300, 600);
    const holdMs = ttlMs * random.between(1.5, 2.5);
    const mayBeLong =
      isUse(step) && step.renew && step.attemptId === undefined && step.mode?.kind !== "nested";
    if (!mayBeLong || !isDrawn || count === maxLongHolds) {
      return step;
    }
    count += 1;
    return { ...step, ttlMs, holdMs };
  });
}
