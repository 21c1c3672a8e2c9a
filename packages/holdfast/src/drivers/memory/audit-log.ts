import { maxAuditRecords, type AuditRecord, type BreakNote } from "../../operator/audit.ts";
import type { Clock } from "../../runtime/clock.ts";

/** The records of the last breaks. */
export class AuditLog {
  readonly records: AuditRecord[] = [];
  readonly #clock: Clock;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns the id of the record */
  add(entry: Pick<AuditRecord, "key" | "fencingToken" | "reason">, { by, owner }: BreakNote): string {
    this.#count += 1;
    const [id, at] = [String(this.#count), Math.floor(this.#clock.wall())];
    const result = "broken" as const;
    this.records.push({
      id,
      at,
      action: "break",
      by,
      ...entry,
      result,
      ...(owner !== undefined && { owner }),
    });
    if (this.records.length > maxAuditRecords) {
      this.records.shift();
    }
    return id;
  }
}
