import type { RedisClient } from "../../drivers/redis/clients/detect.ts";

/** The outcome of one attempt. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: ReadonlySet<RedisClient>;
  /** The clients that did not grant, each with the reason. */
  readonly votesAgainst: ReadonlyMap<RedisClient, Error>;
}

/** The result of a release. `attempts` is empty, because the votes of a success are not counted here. */
export interface ExecutionResult {
  readonly attempts: readonly Promise<ExecutionStats>[];
}

/** A resource is locked by another holder, or the lock has ended. */
export class ResourceLockedError extends Error {
  override readonly name = "ResourceLockedError";
}

/** An operation had no majority. */
export class ExecutionError extends Error {
  override readonly name = "ExecutionError";
  /** The last attempt; empty: no server was asked. */
  readonly attempts: readonly Promise<ExecutionStats>[];

  constructor(message: string, attempts: readonly Promise<ExecutionStats>[], options?: { cause?: unknown }) {
    super(message, options);
    this.attempts = attempts;
  }
}

export { ExecutionError as LockError };
