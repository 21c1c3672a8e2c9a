import type { ExecutionResult, ExecutionStats } from "./errors.ts";

/** The `Redlock` of a lock. */
export interface LockHost {
  release(lock: Lock): Promise<ExecutionResult>;
  extend(existing: Lock, duration: number): Promise<Lock>;
}

/** A lock on one or more resources. */
export class Lock implements AsyncDisposable {
  readonly redlock: LockHost;
  readonly resources: readonly string[];
  /** The fencing token as text. `redlock` has a random value here. */
  readonly value: string;
  /** Empty: the votes of a success are not counted here. */
  readonly attempts: readonly Promise<ExecutionStats>[] = [];
  /** The end of the validity, milliseconds since 1970; 0: released, or replaced by an extension. */
  expiration: number;

  constructor(redlock: LockHost, resources: readonly string[], value: string, expiration: number) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.expiration = expiration;
  }

  /** The first resource, as in version 4. */
  get resource(): string {
    return this.resources[0] as string;
  }

  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** The name of {@link release} in version 4. */
  unlock(): Promise<ExecutionResult> {
    return this.release();
  }

  /** @returns a new lock. Its end is `duration` ms from now, or the end of this lock if that is later */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }
}
