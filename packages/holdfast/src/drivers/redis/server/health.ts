import type { BoundedCalls } from "./bounded-calls.ts";
import { isForbidden } from "./errors.ts";
import { healthScript } from "../protocol/scripts.generated.ts";

/** The properties of a server that decide whether a quorum counts its votes. */
export interface ServerHealth {
  readonly runId: string;
  readonly uptimeMs: number;
  readonly role: string;
  /** A replica that is promoted to primary gets another one. */
  readonly replicationId: string;
  /** The server writes each change to its disk before it answers. */
  readonly isDurable: boolean;
  /** The server evicts keys if its memory is full. */
  readonly evicts: boolean;
  /** How often the keys of this run were flushed. */
  readonly flushes: number;
}

/**
 * Requests the health of a server. A server that forbids `CONFIG` counts as not durable. Rejects with an `EngineError` if the server
 * does not answer, because its health is then unknown.
 */
export async function requestHealth(calls: BoundedCalls): Promise<ServerHealth> {
  const [reply, policy] = await Promise.all([
    calls.run(healthScript, [], []),
    calls.command("CONFIG", ["GET", "appendfsync"]).catch((error: unknown) => {
      if (!isForbidden(error)) {
        throw error;
      }
    }),
  ]);
  return parseHealth(reply as unknown[], policy);
}

function parseHealth(reply: readonly unknown[], policy: unknown): ServerHealth {
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
