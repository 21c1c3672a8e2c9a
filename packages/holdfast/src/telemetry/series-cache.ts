import { instruments, type CounterName, type HistogramName } from "./instruments.ts";
import type { Recorder, Series } from "./recorder.ts";

/** Writes values to a recorder, and keeps its series, because a look-up costs less than attributes for each value. */
export class SeriesCache {
  readonly #recorder: Recorder;
  readonly #series = new Map<string, Series>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** @param values of the attributes, in the order of the table of instruments; the last ones may be absent */
  add(name: HistogramName | CounterName, value: number, ...values: readonly string[]): void {
    let id: string = name;
    for (const each of values) {
      id += `\n${each}`;
    }
    let series = this.#series.get(id);
    if (!series) {
      const names = instruments[name].attributes.slice(0, values.length);
      const attributes = names.map((attribute, index) => [attribute, values[index] as string]);
      series = this.#recorder.series(name, Object.fromEntries(attributes) as Record<string, string>);
      this.#series.set(id, series);
    }
    series(value);
  }
}
