import type { BoundedCalls } from "./bounded-calls.ts";
import { isServerReply } from "./errors.ts";
import { healthScript } from "../protocol/scripts.generated.ts";

/** The properties of a server that decide whether a quorum counts its votes. */
export interface ServerHealth {
  readonly runId: string;
  readonly uptimeMs: number;
  readonly role: string;
  /** A replica that is promoted to primary gets another one. */
  readonly replicationId: string;
  /** The server writes each change to its disk before it answers, and loads all of them at its next start. */
  readonly isDurable: boolean;
  /** The server evicts keys if its memory is full. */
  readonly evicts: boolean;
  /** How often the keys of this run were flushed. */
  readonly flushes: number;
}

/**
 * Requests the health of a server. A server counts as not durable if it refuses `CONFIG`, or if its durability is not read. Rejects with
 * an `EngineError` if the server does not answer, because its health is then unknown.
 */
export async function requestHealth(calls: BoundedCalls, readsDurability: boolean): Promise<ServerHealth> {
  const before = await requestFacts(calls);
  if (!readsDurability) {
    return before;
  }
  const isSynced = await requestSyncSettings(calls);
  const health = await requestFacts(calls);
  // A client library may send CONFIG again to another run, whose settings say nothing about this one.
  return { ...health, isDurable: health.isDurable && isSynced && before.runId === health.runId };
}

/** The facts of INFO. `isDurable` states only whether a restart loads the append-only file. */
async function requestFacts(calls: BoundedCalls): Promise<ServerHealth> {
  const reply = (await calls.run(healthScript, [], [])) as unknown[];
  const [runId, uptime, role, replicationId, isFileLoadable, eviction, maxMemory, flushes] = reply;
  return {
    runId: String(runId),
    uptimeMs: Number(uptime) * 1000,
    role: String(role),
    replicationId: String(replicationId),
    isDurable: isFileLoadable === 1,
    evicts: Number(maxMemory) > 0 && String(eviction) !== "noeviction",
    flushes: Number(flushes),
  };
}

/** Whether the server forces each change to its disk before it answers, also during a rewrite of its file. */
async function requestSyncSettings(calls: BoundedCalls): Promise<boolean> {
  // Redis before 7 takes one pattern only.
  const reply = await calls.command("CONFIG", ["GET", "*appendfsync*"]).catch((error: unknown) => {
    if (!isServerReply((error as Error).cause)) {
      throw error;
    }
  });
  const settings = Array.isArray(reply) ? objectOf(reply) : ((reply ?? {}) as Record<string, unknown>);
  return settings["appendfsync"] === "always" && settings["no-appendfsync-on-rewrite"] === "no";
}

function objectOf(pairs: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    object[String(pairs[index])] = pairs[index + 1];
  }
  return object;
}
