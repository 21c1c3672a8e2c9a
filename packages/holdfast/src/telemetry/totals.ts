import type { Attributes, CounterName } from "./instruments.ts";
import type { Observation, Series } from "./recorder.ts";

/** The totals of counters and up-down counters. The libraries for metrics read them at each collection, which costs less than a call. */
export class Totals {
  readonly #ofName = new Map<CounterName, Map<string, { value: number; readonly attributes: Attributes }>>();

  series(name: CounterName, attributes: Attributes): Series {
    const totals =
      this.#ofName.get(name) ?? new Map<string, { value: number; readonly attributes: Attributes }>();
    this.#ofName.set(name, totals);
    const id = JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
    const total = totals.get(id) ?? { value: 0, attributes };
    totals.set(id, total);
    return (value) => {
      total.value += value;
    };
  }

  read(name: CounterName): readonly Observation[] {
    return [...(this.#ofName.get(name)?.values() ?? [])];
  }
}
