import type { Measurement } from "../run/protocol.ts";

export interface RunningLoad {
  /** What is not to be collected as garbage before the load is. */
  readonly ready?: readonly unknown[];
  begin(): void;
  end(): Measurement;
  /** Resolves when no task runs any more. Not for waiters on a key that somebody keeps for ever. */
  stop(): Promise<void>;
}
