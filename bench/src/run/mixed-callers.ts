import type { Measurement, Stays } from "./protocol.ts";

/** Weighs as much as so many readers: more than there are. */
export const writerWeight = 1_000;

/** How much was inside at once at the most, by what all processes saw. What is seen is shorter than what was held. */
export function largestCrowd(stays: readonly Stays[]): number {
  const moments = stays
    .flatMap(momentsOf)
    .sort((one, other) => one.at - other.at || one.change - other.change);
  let [inside, largest] = [0, 0];
  for (const { change } of moments) {
    inside += change;
    largest = Math.max(largest, inside);
  }
  return largest;
}

/** The same of what a crew saw. */
export function refuseCrowdIn(measurements: readonly Measurement[], limit: number): void {
  refuseCrowd(
    measurements.map(({ stays }) => stays),
    limit,
  );
}

/** @throws {Error} where more was inside than may be: who does not lock has no figures */
export function refuseCrowd(stays: readonly Stays[], limit: number): void {
  const largest = largestCrowd(stays);
  if (largest > limit)
    throw new Error(`does not lock: ${describe(largest)} inside at once, ${describe(limit)} allowed`);
}

function describe(weight: number): string {
  const writers = Math.floor(weight / writerWeight);
  const others = weight % writerWeight;
  return writers > 0 ? `${writers} writing and ${others} reading` : String(others);
}

interface Moment {
  readonly at: number;
  readonly change: number;
}

function momentsOf(stays: Stays): Moment[] {
  return Array.from({ length: stays.length / 3 }, (_, index) => {
    const [entry = 0, leaving = 0, weight = 0] = stays.subarray(3 * index, 3 * index + 3);
    return [
      { at: entry, change: weight },
      { at: leaving, change: -weight },
    ];
  }).flat();
}
