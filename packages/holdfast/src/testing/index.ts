export { driverConformance } from "./conformance.ts";
export type { Conformance, OpenedDriver } from "./conformance.ts";
export { manualClock } from "./manual-clock.ts";
export type { ManualClock } from "./manual-clock.ts";
export { manualRandom } from "./manual-random.ts";
export { faulty, faultyClient } from "./faulty.ts";
export type { Faults, FaultyOptions } from "./faulty.ts";
export type { Call, Choice } from "./faulty/plan.ts";
