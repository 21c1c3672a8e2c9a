export { driverConformance } from "./conformance/suite.ts";
export type { Conformance, OpenedDriver } from "./conformance/suite.ts";
export { manualClock } from "./manual-clock.ts";
export type { ManualClock } from "./manual-clock.ts";
export { manualRandom } from "./manual-random.ts";
export { faulty, faultyClient } from "./fault-injection/faulty.ts";
export type { FaultInjector, FaultyOptions } from "./fault-injection/faulty.ts";
export type { InterceptedCall, FaultChoice } from "./fault-injection/fault-plan.ts";
