import type { Histogram, Meter, Observable, ObservableResult } from "@opentelemetry/api";

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
import { Totals } from "../telemetry/totals.ts";

/** Creates all instruments on a meter of OpenTelemetry, and writes their values. */
export class MeterRecorder implements Recorder {
  readonly #meter: Meter;
  readonly #histograms: ReadonlyMap<InstrumentName, Histogram>;
  readonly #totals = new Totals();
  readonly #stops: (() => void)[] = [];

  constructor(meter: Meter) {
    this.#meter = meter;
    const histograms = instrumentNames.filter((name) => instruments[name].kind === "histogram");
    this.#histograms = new Map(histograms.map((name) => [name, createHistogram(meter, name)]));
    for (const name of counterNames) {
      this.observe(name, () => this.#totals.read(name));
    }
  }

  series(name: HistogramName | CounterName, attributes: Attributes): Series {
    const histogram = this.#histograms.get(name);
    return histogram
      ? (value) => histogram.record(value, attributes)
      : this.#totals.series(name as CounterName, attributes);
  }

  /** A histogram of OpenTelemetry has no series without a value. */
  start(): void {}

  observe(
    name: Exclude<InstrumentName, HistogramName>,
    read: () => Promise<readonly Observation[]> | readonly Observation[],
  ): void {
    const observable = this.#createObservable(name);
    const callback = async (result: ObservableResult): Promise<void> => {
      for (const { value, attributes } of await read()) {
        result.observe(value, attributes);
      }
    };
    observable.addCallback(callback);
    this.#stops.push(() => observable.removeCallback(callback));
  }

  close(): void {
    for (const stop of this.#stops.splice(0)) {
      stop();
    }
  }

  #createObservable(name: InstrumentName): Observable {
    const { kind, unit, description } = instruments[name];
    const options = { unit, description };
    switch (kind) {
      case "counter":
        return this.#meter.createObservableCounter(name, options);
      case "up-down-counter":
        return this.#meter.createObservableUpDownCounter(name, options);
      case "gauge":
      case "histogram":
        return this.#meter.createObservableGauge(name, options);
    }
  }
}

function createHistogram(meter: Meter, name: InstrumentName): Histogram {
  const { unit, description, buckets = [] } = instruments[name];
  return meter.createHistogram(name, {
    unit,
    description,
    advice: { explicitBucketBoundaries: [...buckets] },
  });
}
