/**
 * A library under test, at one Redis or at the nodes of a quorum. Each contestant runs in processes of its own, so that
 * neither its garbage nor its compiled code touches another's figures.
 */
export interface Contestant {
  /** The settings that differ from its defaults, for the report. */
  readonly settings: string;
  open(ports: Ports): Promise<Session>;
}

/** One, or those of the nodes of a quorum. */
export type Ports = readonly [first: number, ...others: number[]];

export interface Session {
  /**
   * Waits without end: a peer that gives up under contention would be measured on its patience. Where readers may share the
   * lock, those that do not write do; elsewhere everybody has it alone.
   */
  acquire(key: string, ttlMs: number, writes: boolean): Promise<Release>;
  /** Acquires, and lets the library itself keep the lease alive; `null`: it has no renewal, or nobody asks for it. */
  readonly hold: ((key: string, ttlMs: number) => Promise<HeldLock>) | null;
}

type Release = () => Promise<unknown>;

export interface HeldLock {
  /** What the library has told its holder, which may be less than the truth. */
  isLost(): boolean;
}
