import { instruments, type CounterName, type HistogramName } from "./instruments.ts";
import type { Recorder, Series } from "./recorder.ts";

/** The series with some values of attributes, and the series with one more value. */
interface SeriesNode {
  series: Series | undefined;
  readonly next: Map<string, SeriesNode>;
}

/** Writes values to a recorder, and keeps its series in a tree, because attributes or a joined name for each value cost more. */
export class SeriesCache {
  readonly #recorder: Recorder;
  readonly #instruments: SeriesNode = { series: undefined, next: new Map() };

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** @param values of the attributes, in the order of the table of instruments; the last ones may be absent */
  add(name: HistogramName | CounterName, value: number, ...values: readonly string[]): void {
    let node = after(this.#instruments, name);
    for (const each of values) {
      node = after(node, each);
    }
    node.series ??= this.#create(name, values);
    node.series(value);
  }

  #create(name: HistogramName | CounterName, values: readonly string[]): Series {
    const names = instruments[name].attributes.slice(0, values.length);
    const attributes = names.map((attribute, index) => [attribute, values[index] as string]);
    return this.#recorder.series(name, Object.fromEntries(attributes) as Record<string, string>);
  }
}

function after({ next }: SeriesNode, value: string): SeriesNode {
  let node = next.get(value);
  if (!node) {
    node = { series: undefined, next: new Map() };
    next.set(value, node);
  }
  return node;
}
