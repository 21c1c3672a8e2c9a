import type { HoldTimes } from "../api/types.ts";

let known: ReadonlyMap<string, HoldTimes> = new Map();

/** How long earlier holds of a key lasted, if the service has seen enough of them. */
export function usualOf(key: string): HoldTimes | undefined {
  return known.get(key);
}

export function setUsual(times: readonly HoldTimes[]): void {
  known = new Map(times.map((each) => [each.key, each]));
}
