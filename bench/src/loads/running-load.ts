import type { Measurement } from "../run/protocol.ts";

export interface RunningLoad {
  /** Objects that must not be collected as garbage while the load runs, such as leases. */
  readonly ready?: readonly unknown[];
  begin(): void;
  end(): Measurement;
  /** Resolves when all tasks have ended. A load of waiters resolves at once instead, because its waits never end. */
  stop(): Promise<void>;
}
