import type { Client } from "./clients.ts";

/** A library under test, with the set-up that it recommends; see the README for what all get alike. */
export interface Library {
  /** What it is given beyond its defaults. */
  readonly settings: string;
  onServer(client: Client): Locks;
  /** `null`: it knows no quorum. */
  readonly onQuorum: ((clients: readonly Client[]) => Locks) | null;
}

/** What a scenario asks of a library. `null`: the library does not offer it. */
export interface Locks {
  /** The lock's name on the server. */
  nameOnServer(key: string): string;
  /** Waits for about so long, then rejects. Renewal as the library has it by default. */
  acquire(key: string, options: AcquireOptions): Promise<Lease>;
  /** Acquires, and lets the library itself keep the lease alive. */
  readonly hold: ((key: string, ttlMs: number) => Promise<HeldLock>) | null;
  /** Its callback form. */
  readonly withLock: (<T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>) | null;
  /** Whether anybody holds the lock. */
  readonly isHeld: ((key: string) => Promise<boolean>) | null;
  /** An acquire that can be called off; waits for a minute. */
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
  /** What the library tells its holder who asks now, by whatever it offers: a signal, a flag, a clock. */
  isHeld(): boolean;
}

export interface Lease extends HeldLock {
  /** Resolves with what the library resolves with. */
  release(): Promise<unknown>;
}
