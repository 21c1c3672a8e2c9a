export type { Clock } from "./runtime/clock.ts";
export type {
  AcquireOutcome,
  AcquireTrace,
  CountedVote,
  Diagnostics,
  GrantedVia,
  HoldTrace,
  LeaseFacts,
  LockFacts,
  ReleaseTrace,
  RenewTrace,
  WaitPlace,
} from "./diagnostics.ts";
export type { Driver, HolderInfo } from "./driver.ts";
export {
  EngineError,
  isLockError,
  LeaseLostError,
  LockError,
  QuorumError,
  WaitTimeoutError,
  type AnyLockError,
  type LockErrorCode,
  type LockErrorOf,
  type LossReason,
  type NodeVote,
  type Outcome,
} from "./errors.ts";
export type { Election } from "./kinds/election.ts";
export type { CountDownOptions, Latch, LatchOptions, LatchWaitOptions } from "./kinds/latch.ts";
export type { OnceOptions } from "./kinds/once.ts";
export type { ReadWrite } from "./kinds/shared.ts";
export type { PermitOptions, Semaphore, SemaphoreOptions } from "./kinds/shared.ts";
export type { ReentrantOptions } from "./kinds/reentrant.ts";
export type { Lease, SerializedLease, WriteLease } from "./lease/lease.ts";
export type { AuditOptions, AuditPage, AuditRecord } from "./operator/audit.ts";
export type { BreakOwnerOptions, BreakOwnerResult, BreakResult } from "./operator/break-owner.ts";
export type { BreakOptions } from "./operator/operator-calls.ts";
export type { Lockable, LockedCallback, WithLockResult } from "./kinds/lockable.ts";
export { createLocks } from "./create-locks.ts";
export type { Locks, LocksAdmin } from "./locks.ts";
export type { AcquireOptions, AdoptOptions, ListOptions, LocksOptions, TryOptions } from "./options.ts";
export type {
  ProcessesOptions,
  ProcessHold,
  ProcessList,
  ProcessState,
  ProcessWait,
} from "./processes/process-state.ts";
export type { Random } from "./runtime/random.ts";
export type {
  HeldKind,
  HeldLease,
  Holder,
  LockEvent,
  LockKind,
  LockState,
  NodeState,
  NodeView,
  Replication,
  Waiter,
} from "./lock-state.ts";
