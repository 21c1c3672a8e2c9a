import { withJson } from "../runtime/plain-values.ts";

/** The record of one break in the engine. `JSON.stringify` writes the fencing token as a decimal string. */
export interface AuditRecord {
  /** Larger than the ids of earlier records: a decimal number as text. */
  readonly id: string;
  /** The time of the break by the engine's clock, milliseconds since 1970. */
  readonly at: number;
  readonly action: "break";
  /** The operator: the `by` of the call, or the owner of the `Locks`. */
  readonly by: string;
  readonly key: string;
  readonly fencingToken: bigint;
  /** The owner of the grant as the operator's process saw it before the break; absent: not known. */
  readonly owner?: string;
  readonly reason: string;
  readonly result: "broken";
}

/** Options of `LocksAdmin.audit`. */
export interface AuditOptions {
  /** Lists only the records of this key. @defaultValue all keys */
  key?: string | undefined;
  /** Lists only the record with this id, as {@link BreakResult.auditId} names it. @defaultValue all records */
  id?: string | undefined;
  /** The cursor from the page before. @defaultValue the newest record */
  cursor?: string | undefined;
  /** The size of a page, 1 to 1 000. @defaultValue 100 */
  limit?: number | undefined;
}

/** A page of the audit, newest record first. `cursor` is null on the last page. */
export interface AuditPage {
  readonly records: readonly AuditRecord[];
  readonly cursor: string | null;
}

/** The part of a record that the operator's process writes. */
export interface BreakNote {
  readonly by: string;
  readonly owner?: string | undefined;
}

/** The result of one break in an engine. */
export interface BreakOutcome {
  /** Whether the grant held the key, and ended by this break. */
  readonly isBroken: boolean;
  /** The id of the record. Absent: nothing was broken, or the engine keeps no audit. */
  readonly auditId?: string | undefined;
}

/** One page of the audit. */
export interface AuditQuery {
  readonly key: string | undefined;
  readonly id: string | undefined;
  readonly cursor: string | null;
  readonly limit: number;
}

/** How many records an engine keeps. */
export const maxAuditRecords = 1_000;

/** One page of records. @param records oldest first */
export function auditPage(
  records: readonly AuditRecord[],
  { key, id: wanted, cursor, limit }: AuditQuery,
): AuditPage {
  const matching = records
    .filter((record) => key === undefined || record.key === key)
    .filter(({ id }) => wanted === undefined || id === wanted)
    .filter(({ id }) => cursor === null || BigInt(id) < BigInt(cursor))
    .reverse();
  const page = matching.slice(0, limit).map((record) => withJson(record));
  return { records: page, cursor: matching.length > limit ? (page.at(-1)?.id ?? null) : null };
}
