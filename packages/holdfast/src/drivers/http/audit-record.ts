import type { AuditRecord } from "../../operator/audit.ts";
import { withJson } from "../../runtime/plain-values.ts";
import type { WireAudit } from "./wire.ts";

/** The library's record of a break, from the service's JSON. */
export function auditRecordOf({
  principal,
  fencingToken,
  ...record
}: WireAudit["records"][number]): AuditRecord {
  return withJson({ ...record, by: principal, fencingToken: BigInt(fencingToken) });
}
