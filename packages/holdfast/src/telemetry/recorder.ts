import type { Attributes, CounterName, HistogramName, InstrumentName } from "./instruments.ts";

/** One value of an observed instrument. */
export interface Observation {
  readonly value: number;
  readonly attributes: Attributes;
}

/** Takes the values of one time series. */
export type Series = (value: number) => void;

/** Writes the values of the instruments to a library for metrics. */
export interface Recorder {
  /** One series of a histogram, which takes values; or of a counter, which takes additions. */
  series(name: HistogramName | CounterName, attributes: Attributes): Series;
  /** Shows these attributes of a histogram without a value, if the library supports that. */
  start(name: HistogramName, attributes: Attributes): void;
  /** Reads the values at each collection. For a counter, the values are totals. */
  observe(
    name: Exclude<InstrumentName, HistogramName>,
    read: () => Promise<readonly Observation[]> | readonly Observation[],
  ): void;
  /** Ends all observations. */
  close(): void;
}
