export type { Instrumentation } from "../telemetry/instrumentation.ts";
export {
  instruments,
  type Attributes,
  type Instrument,
  type InstrumentName,
} from "../telemetry/instruments.ts";
export type { Groups } from "../telemetry/key-groups.ts";
export { instrumentHoldfast, type OtelOptions } from "./instrument.ts";
