import type { Measurement, HoldIntervals } from "./protocol.ts";

/** The weight of a writer. It exceeds the total weight of all readers, so one sum shows how many of each hold the lock. */
export const writerWeight = 1_000;

/**
 * The largest total weight of concurrent holders, over all processes. The recorded intervals are shorter than the holds, so an
 * overlap of intervals proves an overlap of holds.
 */
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

/** Checks the holds that a worker group measured. */
export function assertOverlapIn(measurements: readonly Measurement[], limit: number): void {
  assertOverlap(
    measurements.map(({ holds }) => holds),
    limit,
  );
}

/** @throws {Error} if more weight was held than `limit`, because a contestant that does not exclude gets no figures */
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
