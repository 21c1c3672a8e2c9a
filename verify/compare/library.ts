import type { Client } from "./clients.ts";

/** A library under test, with its recommended set-up. The README lists the settings that all libraries share. */
export interface Library {
  /** The settings beyond the library's defaults. */
  readonly settings: string;
  onServer(client: Client): Locks;
  /** `null`: the library does not support a quorum. */
  readonly onQuorum: ((clients: readonly Client[]) => Locks) | null;
}

/** The operations of a library that scenarios use. `null`: the library does not offer the operation. */
export interface Locks {
  /** The key of the lock on the server. */
  nameOnServer(key: string): string;
  /** Waits for about the given time, then rejects. Renewal is as in the library's defaults. */
  acquire(key: string, options: AcquireOptions): Promise<Lease>;
  /** Acquires a lease that the library renews. */
  readonly hold: ((key: string, ttlMs: number) => Promise<HeldLock>) | null;
  /** The library's callback form. */
  readonly withLock: (<T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>) | null;
  /** Whether the lock has a holder. */
  readonly isHeld: ((key: string) => Promise<boolean>) | null;
  /** An acquire that can be aborted, with a wait of one minute. */
  readonly acquireUntilAborted: ((key: string, ttlMs: number, signal: AbortSignal) => Promise<Lease>) | null;
  /** One permit of a semaphore. */
  readonly permit: ((key: string, options: PermitOptions) => Promise<Lease>) | null;
}

export interface AcquireOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
}

export interface PermitOptions extends AcquireOptions {
  readonly limit: number;
}

export interface HeldLock {
  /** Whether the library reports the lock as held at this moment, by a signal, a flag or a deadline. */
  isHeld(): boolean;
}

export interface Lease extends HeldLock {
  /** Resolves with the library's own result. */
  release(): Promise<unknown>;
}
