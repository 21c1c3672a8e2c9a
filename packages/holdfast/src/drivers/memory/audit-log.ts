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

  add(
    entry: Pick<AuditRecord, "key" | "fencingToken" | "reason" | "result">,
    { by, owner }: BreakNote,
  ): void {
    this.#count += 1;
    const [id, at] = [String(this.#count), Math.floor(this.#clock.wall())];
    this.records.push({ id, at, action: "break", by, ...entry, ...(owner !== undefined && { owner }) });
    if (this.records.length > maxAuditRecords) {
      this.records.shift();
    }
  }
}
