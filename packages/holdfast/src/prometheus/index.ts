export { holdEnd, recordFailedVotes, recordVote } from "../telemetry/channel-metrics.ts";
export type { Instrumentation } from "../telemetry/instrumentation.ts";
export {
  instruments,
  type Attributes,
  type Instrument,
  type InstrumentName,
} from "../telemetry/instruments.ts";
export { KeyGroups, type Groups } from "../telemetry/key-groups.ts";
export { NodeReader, observeNodes, observeTimerLag, type NodeSource } from "../telemetry/node-metrics.ts";
export type { Recorder } from "../telemetry/recorder.ts";
export { SeriesCache } from "../telemetry/series-cache.ts";
export { instrumentHoldfast, type PrometheusOptions } from "./instrument.ts";
export { metricName } from "./names.ts";
export { RegistryRecorder } from "./registry-recorder.ts";
