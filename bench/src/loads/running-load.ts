import type { Measurement } from "../protocol.ts";

export interface RunningLoad {
  begin(): void;
  end(): Measurement;
  /** Resolves when no task runs any more. Not for waiters on a key that somebody keeps for ever. */
  stop(): Promise<void>;
}
