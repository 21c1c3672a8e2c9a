export { driverConformance } from "./conformance/suite.ts";
export type { Conformance, OpenedDriver } from "./conformance/suite.ts";
export { manualClock } from "./manual-clock.ts";
export type { ManualClock } from "./manual-clock.ts";
export { manualRandom } from "./manual-random.ts";
export { faulty, faultyClient } from "./fault-injection/faulty.ts";
export type { FaultInjector, FaultyOptions } from "./fault-injection/faulty.ts";
export type { InterceptedCall, FaultChoice } from "./fault-injection/fault-plan.ts";

// The contract of a driver, for its author.
export type {
  AcquireRequest,
  AcquireResult,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  LatchEngine,
  LatchRef,
  LockMode,
  PendingAcquire,
  PendingLatchWait,
  PendingRequeue,
  VerifyResult,
} from "../driver.ts";
export type { AuditQuery, BreakNote, BreakOutcome } from "../operator/audit.ts";
export type { ProcessDirectory, ProcessQuery, ReportQuery } from "../processes/process-state.ts";
export type { Validity } from "../validity.ts";
