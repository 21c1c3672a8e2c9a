/**
 * A lock under test, on one Redis server, on the nodes of a quorum, or on another engine. Each contestant runs in its own processes, so that its
 * garbage and its compiled code do not affect the figures of another.
 */
export interface Contestant<Address = Ports> {
  /** The settings that differ from its defaults, for the report. */
  readonly settings: string;
  open(address: Address): Promise<Session>;
}

/** The port of one server, or the ports of the nodes of a quorum. */
export type Ports = readonly [first: number, ...others: number[]];

export interface Session {
  /**
   * Waits without a limit, because otherwise the figures of a contended lock would depend on how long a peer waits. If the
   * contestant has a read-write lock, calls with `writes: false` share it. Other locks are exclusive.
   */
  acquire(key: string, ttlMs: number, writes: boolean): Promise<Release>;
  /** Acquires a lease that the library renews. `null`: the library has no renewal, or no suite needs it. */
  readonly hold: ((key: string, ttlMs: number) => Promise<HeldLock>) | null;
}

type Release = () => Promise<unknown>;

export interface HeldLock {
  /** Whether the library has reported the loss to the holder. A lease may be lost without a report. */
  isLost(): boolean;
}
