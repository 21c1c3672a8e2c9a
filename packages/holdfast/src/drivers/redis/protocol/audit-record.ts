import type { AuditRecord, BreakNote } from "../../../operator/audit.ts";

/** The fields of a record that the operator's process writes. */
export interface RecordNote extends BreakNote {
  readonly key: string;
  readonly reason: string;
  /** The id that all nodes of a quorum record. Absent: the server's own id. */
  readonly id?: string;
  /** The fencing token that the operator named, because each node of a quorum may have another number. */
  readonly fencingToken?: string;
}

/** The note of the operation `recordedBreak`. */
export function encodeRecordNote({ key, reason, by, owner, id, fencingToken }: RecordNote): string {
  return JSON.stringify({ key, by, owner, reason, id, fencingToken });
}

/** The record in a member of the audit; undefined: another program wrote the member. */
export function parseAuditRecord(member: string): AuditRecord | undefined {
  const [, id = "", at, number, text = ""] = /^(\d+) (\d+) broken (\d+) (.*)$/s.exec(member) ?? [];
  if (number === undefined) {
    return undefined;
  }
  try {
    const note = JSON.parse(text) as RecordNote;
    return {
      id: note.id ?? id,
      at: Math.floor(Number(at) / 1000),
      action: "break",
      by: note.by,
      key: note.key,
      fencingToken: BigInt(note.fencingToken ?? number),
      ...(note.owner !== undefined && { owner: note.owner }),
      reason: note.reason,
      result: "broken",
    };
  } catch {
    return undefined;
  }
}
