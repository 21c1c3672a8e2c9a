import type { Measurement, HoldIntervals } from "./protocol.ts";

/** Weighs as much as so many readers: more than there are. */
export const writerWeight = 1_000;

/** How much was inside at once at the most, by what all processes saw. What is seen is shorter than what was held. */
export function maxOverlap(holds: readonly HoldIntervals[]): number {
  const changes = holds
    .flatMap(overlapChangesOf)
    .sort((one, other) => one.at - other.at || one.change - other.change);
  let [inside, largest] = [0, 0];
  for (const { change } of changes) {
    inside += change;
    largest = Math.max(largest, inside);
  }
  return largest;
}

/** The same of what a crew saw. */
export function assertOverlapIn(measurements: readonly Measurement[], limit: number): void {
  assertOverlap(
    measurements.map(({ holds }) => holds),
    limit,
  );
}

/** @throws {Error} where more was inside than may be: who does not lock has no figures */
export function assertOverlap(holds: readonly HoldIntervals[], limit: number): void {
  const largest = maxOverlap(holds);
  if (largest > limit)
    throw new Error(
      `does not lock: ${describeWeight(largest)} inside at once, ${describeWeight(limit)} allowed`,
    );
}

function describeWeight(weight: number): string {
  const writers = Math.floor(weight / writerWeight);
  const others = weight % writerWeight;
  return writers > 0 ? `${writers} writing and ${others} reading` : String(others);
}

interface OverlapChange {
  readonly at: number;
  readonly change: number;
}

function overlapChangesOf(holds: HoldIntervals): OverlapChange[] {
  return Array.from({ length: holds.length / 3 }, (_, index) => {
    const [entry = 0, leaving = 0, weight = 0] = holds.subarray(3 * index, 3 * index + 3);
    return [
      { at: entry, change: weight },
      { at: leaving, change: -weight },
    ];
  }).flat();
}
