import { instrumentNames, instruments, type CounterName, type HistogramName } from "./instruments.ts";
import type { Recorder } from "./recorder.ts";

/** Known groups start at 0, so that rates and alerts see the first event. */
export function startAtZero(recorder: Recorder, groups: readonly string[]): void {
  for (const group of groups) {
    for (const name of instrumentNames) {
      const { initial = [], kind } = instruments[name];
      for (const attributes of initial) {
        if (kind === "histogram") {
          recorder.start(name as HistogramName, { group, ...attributes });
        } else {
          recorder.series(name as CounterName, { group, ...attributes });
        }
      }
    }
  }
}
