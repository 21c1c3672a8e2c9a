import type { ChaosServer } from "./chaos-server.ts";
import type { FailoverGroups } from "./succession.ts";

/** The servers of a run. */
export interface ServerGroup {
  readonly servers: readonly ChaosServer[];
  /** The ports of the sentinels. */
  readonly sentinels: readonly number[];
  /** Absent if no server replaces another. */
  readonly failovers?: FailoverGroups;
  stop(): Promise<void>;
}
