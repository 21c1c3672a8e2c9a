/** What a server says of itself that decides whether a quorum may count it. */
export interface ServerHealth {
  readonly runId: string;
  readonly uptimeMs: number;
  readonly role: string;
  /** Changes where a replica was promoted. */
  readonly replicationId: string;
  /** It has every write on its disk before it answers. */
  readonly isDurable: boolean;
  /** It drops keys when its memory is full. */
  readonly evicts: boolean;
  /** How often keys were flushed in this run. */
  readonly flushes: number;
}

export function parseHealth(reply: readonly unknown[], policy: unknown): ServerHealth {
  const [runId, uptime, role, replicationId, appendOnly, eviction, maxMemory, flushes] = reply;
  const appendFsync = Array.isArray(policy)
    ? policy[1]
    : (policy as { appendfsync?: unknown } | undefined)?.appendfsync;
  return {
    runId: String(runId),
    uptimeMs: Number(uptime) * 1000,
    role: String(role),
    replicationId: String(replicationId),
    isDurable: Number(appendOnly) === 1 && String(appendFsync) === "always",
    evicts: Number(maxMemory) > 0 && String(eviction) !== "noeviction",
    flushes: Number(flushes),
  };
}
