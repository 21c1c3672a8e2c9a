import { isLockError, type Locks, type NodeState } from "holdfast";

/** A result as `HealthCheckService` of @nestjs/terminus expects it. */
export type LocksHealth<K extends string = string> = Record<
  K,
  {
    readonly status: "up" | "down";
    /** How many servers are reachable and may grant locks. */
    readonly usable: number;
    readonly servers: readonly {
      readonly node: string;
      readonly reachable: boolean;
      /** ms; null: no reply */
      readonly latencyMs: number | null;
      readonly error: string | null;
    }[];
  }
>;

/** A health indicator for @nestjs/terminus 10 to 12. */
export class LocksHealthIndicator {
  readonly #locks: Locks;

  /** @param locks the `Locks` that are checked; by injection the default `Locks` */
  constructor(locks: Locks) {
    this.#locks = locks;
  }

  /**
   * Asks each server. The status is `up` if more than half of the servers are reachable and may grant locks. It is `down` also if the
   * lock service does not reply, and after the shutdown.
   * @param key the name of the indicator in the result
   */
  async isHealthy<K extends string = "locks">(key?: K): Promise<LocksHealth<K>> {
    const nodes = await this.#nodes();
    const usable = nodes.filter(({ reachable, quarantine }) => reachable && quarantine === null).length;
    const status = usable > nodes.length / 2 ? "up" : "down";
    const health: LocksHealth = { [key ?? "locks"]: { status, usable, servers: nodes.map(serverOf) } };
    return health as LocksHealth<K>;
  }

  async #nodes(): Promise<readonly NodeState[]> {
    try {
      return await this.#locks.admin.nodes();
    } catch (error) {
      if (isLockError(error)) {
        return [];
      }
      throw error;
    }
  }
}

function serverOf({ node, reachable, latencyMs, error }: NodeState): LocksHealth[string]["servers"][number] {
  return { node, reachable, latencyMs, error };
}
