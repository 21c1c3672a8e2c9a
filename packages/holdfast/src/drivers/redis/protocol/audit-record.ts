import type { AuditRecord, BreakNote } from "../../../operator/audit.ts";

/** The note of the operation `recordedBreak`. */
export function encodeNote(key: string, reason: string, { by, owner }: BreakNote): string {
  return JSON.stringify({ key, by, owner, reason });
}

/** The record in a member of the audit; undefined: another program wrote the member. */
export function parseAuditRecord(member: string): AuditRecord | undefined {
  const [, id = "", at, result, number, note = ""] =
    /^(\d+) (\d+) (broken|not-held) (\d+) (.*)$/s.exec(member) ?? [];
  if (number === undefined) {
    return undefined;
  }
  try {
    const { key, by, owner, reason } = JSON.parse(note) as Pick<
      AuditRecord,
      "key" | "by" | "owner" | "reason"
    >;
    return {
      id,
      at: Math.floor(Number(at) / 1000),
      action: "break",
      by,
      key,
      fencingToken: BigInt(number),
      ...(owner !== undefined && { owner }),
      reason,
      result: result as AuditRecord["result"],
    };
  } catch {
    return undefined;
  }
}
