import type { ClientRecord, SharedClock } from "../judge/history.ts";

/** Writes the events of a client process, with the times of a clock that all processes share. */
export interface ClientLog {
  readonly clock: SharedClock;
  write(record: ClientRecord): void;
}
