import { Counter, Gauge, Histogram, type Registry } from "prom-client";

import {
  counterNames,
  instrumentNames,
  instruments,
  type Attributes,
  type CounterName,
  type HistogramName,
  type InstrumentName,
} from "../telemetry/instruments.ts";
import type { Observation, Recorder, Series } from "../telemetry/recorder.ts";
import { startAtZero } from "../telemetry/start-at-zero.ts";
import { Totals } from "../telemetry/totals.ts";
import { labelName, metricName } from "./names.ts";

/** Registers all instruments on a registry of prom-client, and writes their values. */
export class RegistryRecorder implements Recorder {
  readonly #registry: Registry;
  readonly #metrics: ReadonlyMap<InstrumentName, Counter | Gauge | Histogram>;
  readonly #reads = new Map<InstrumentName, () => Promise<void>>();
  readonly #totals = new Totals();

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#metrics = new Map(instrumentNames.map((name) => [name, this.#create(name)]));
    for (const name of counterNames) {
      this.observe(name, () => this.#totals.read(name));
    }
  }

  series(name: HistogramName | CounterName, attributes: Attributes): Series {
    const metric = this.#metrics.get(name);
    if (metric instanceof Histogram) {
      const child = metric.labels(labelsOf(attributes));
      return (value) => child.observe(value);
    }
    return this.#totals.series(name as CounterName, attributes);
  }

  /** Known groups start at 0, so that rates and alerts see the first event. */
  startAtZero(groups: readonly string[]): void {
    startAtZero(this, groups);
  }

  start(name: HistogramName, attributes: Attributes): void {
    (this.#metrics.get(name) as Histogram).zero(labelsOf(attributes));
  }

  observe(
    name: Exclude<InstrumentName, HistogramName>,
    read: () => Promise<readonly Observation[]> | readonly Observation[],
  ): void {
    const metric = this.#metrics.get(name) as Counter | Gauge;
    this.#reads.set(name, async () => {
      const observations = await read();
      metric.reset();
      for (const { value, attributes } of observations) {
        metric.inc(labelsOf(attributes), value);
      }
    });
  }

  /** Removes the instruments from the registry. */
  close(): void {
    this.#reads.clear();
    for (const name of instrumentNames) {
      this.#registry.removeSingleMetric(metricName(name));
    }
  }

  #create(name: InstrumentName): Counter | Gauge | Histogram {
    const { kind, description, attributes, buckets } = instruments[name];
    const read = (): Promise<void> | undefined => this.#reads.get(name)?.();
    const options = {
      name: metricName(name),
      help: description,
      labelNames: attributes.map(labelName),
      registers: [this.#registry],
    };
    switch (kind) {
      case "histogram":
        return new Histogram({ ...options, ...(buckets && { buckets: [...buckets] }) });
      case "counter":
        return new Counter({ ...options, collect: read });
      case "up-down-counter":
      case "gauge":
        return new Gauge({ ...options, collect: read });
    }
  }
}

function labelsOf(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [labelName(name), value]));
}
