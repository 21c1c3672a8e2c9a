export { http, type HttpOptions } from "./create.ts";
export type { TlsOptions } from "./transport.ts";
export { leaseIdOf, readLeaseId } from "./wire.ts";
export type {
  LeaseParts,
  ServiceCode,
  WireAcquire,
  WireAudit,
  WireEvent,
  WireHolder,
  WireLease,
  WireLock,
  WireLocks,
  WireMode,
  WireNodes,
  WireOwner,
  WireProblem,
  WireReleased,
  WireRenew,
} from "./wire.ts";
