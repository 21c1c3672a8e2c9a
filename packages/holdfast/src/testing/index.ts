export { driverConformance } from "./conformance.ts";
export type { Conformance, OpenedDriver } from "./conformance.ts";
export { manualClock } from "./manual-clock.ts";
export type { ManualClock } from "./manual-clock.ts";
export { manualRandom } from "./manual-random.ts";
