import { setTimeout as delay } from "node:timers/promises";

import { isLockError, type AuditRecord, type LocksAdmin } from "holdfast";

/** An engine keeps at most this many records. */
const limit = 1_000;
/** After a read, the reader pauses for this many times the duration of the read. */
const restFactor = 20;
const maxRestMs = 3_000;

/**
 * Reads the breaks of all operators after holds have ended. The engine writes the record of a break in one step with the break. So a read
 * that begins after an end was seen has its record.
 */
export class AuditReader {
  readonly #locks: Pick<LocksAdmin, "audit">;
  readonly #onRecords: (records: readonly AuditRecord[]) => void;
  #isSupported = true;
  /** Whether a hold has ended since the last successful read began. */
  #isDue = false;
  #restsUntil = 0;
  #reading: Promise<void> | undefined;

  constructor(locks: Pick<LocksAdmin, "audit">, onRecords: (records: readonly AuditRecord[]) => void) {
    this.#locks = locks;
    this.#onRecords = onRecords;
  }

  holdEnded(): void {
    this.#isDue = this.#isSupported;
  }

  /** Resolves when the breaks of all ended holds are known, or the read has failed. Concurrent calls share a read. Never rejects. */
  async read(): Promise<void> {
    await this.#reading; // that read may have begun before the last end
    if (this.#isDue) {
      this.#reading ??= this.#readOnce().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
  }

  async #readOnce(): Promise<void> {
    await delay(Math.max(0, this.#restsUntil - performance.now()), undefined, { ref: false });
    const begun = performance.now();
    this.#isDue = false;
    try {
      this.#onRecords((await this.#locks.audit({ limit })).records);
    } catch (error) {
      this.#isSupported &&= !isLockError(error, "unsupported");
      this.#isDue = this.#isSupported; // the next call reads again
    }
    const ended = performance.now();
    this.#restsUntil = ended + Math.min(maxRestMs, restFactor * (ended - begun));
  }
}
