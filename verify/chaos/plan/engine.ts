import type { Driver } from "holdfast";

import type { ServerAddresses } from "../run/client-protocol.ts";
import type { FaultKind } from "./fault-kinds.ts";
import type { EngineName, NodeSetup, Omission } from "./plan.ts";

/** An engine under test. A new engine implements this interface and lists the faults that it must survive. */
export interface Engine {
  readonly name: EngineName;
  readonly nodeCounts: readonly number[];
  /** The rules that can be left out. Each has the faults that show its absence, and then only these faults occur. */
  readonly omissions: Readonly<Partial<Record<Omission, readonly FaultKind[]>>>;
  /** The largest TTL of the run, in ms. */
  readonly maxTtlMs: number;
  /** Whether one server may replace another. Then a failover may lose a grant, and exclusion is not judged across failovers. */
  readonly failsOver: boolean;
  readonly hasReadWrite: boolean;
  readonly hasSemaphores: boolean;
  readonly hasLatches: boolean;
  /** The largest difference between the fencing tokens of one grant, which its process hands over in memory. 0: it hands over no grant. */
  readonly tokenSpread: number;
  /** Matches the first bytes of a request about a lock. */
  readonly request: RegExp;
  /** Matches the bytes of a notification. Absent: the engine has none. */
  readonly message?: RegExp;
  readonly faultsPerSecond: number;
  readonly faults: readonly FaultKind[];
  /** How the servers store their data, the most durable first. */
  nodes(count: number, without: Omission | null): readonly NodeSetup[];
  /** Connects a client process to the servers through its own proxies. */
  connect(ways: ServerAddresses, without: Omission | null): Promise<Connected>;
}

export interface Connected {
  readonly driver: Driver;
  /** Closes the connections, after the driver was closed. */
  disconnect(): void;
}
