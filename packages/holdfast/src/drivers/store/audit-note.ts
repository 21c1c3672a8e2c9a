import type { AuditRecord, BreakNote } from "../../operator/audit.ts";

/** A record of a break, as a store keeps it. */
export interface StoredRecord {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly key: string;
  readonly fencingToken: bigint;
  /** See {@link encodeNote}. */
  readonly note: string;
}

/** The part of a record that the operator's process writes, as JSON. */
export function encodeNote(reason: string, { by, owner }: BreakNote): string {
  return JSON.stringify({ by, owner, reason });
}

export function recordOf({ id, at, key, fencingToken, note }: StoredRecord): AuditRecord {
  const { by, owner, reason } = JSON.parse(note) as BreakNote & { reason: string };
  return {
    id,
    at: Math.floor(at),
    action: "break",
    by,
    key,
    fencingToken,
    ...(owner !== undefined && { owner }),
    reason,
    result: "broken",
  };
}
