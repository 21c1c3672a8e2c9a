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
  /** This run has rewritten its append-only file. It may have been started without the file, which was switched on later. */
  readonly hasRewritten: boolean;
  /** The names of the append-only file and of its folders. A run with other names starts without the data. Empty: not read. */
  readonly files: string;
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
  const { isSynced, files } = await requestFileSettings(calls);
  const health = await requestFacts(calls);
  // A client library may send CONFIG again to another run, whose settings say nothing about this one.
  return { ...health, isDurable: health.isDurable && isSynced && before.runId === health.runId, files };
}

/** The facts of INFO. `isDurable` states only whether a restart loads the append-only file. */
async function requestFacts(calls: BoundedCalls): Promise<ServerHealth> {
  const reply = (await calls.run(healthScript, [], [])) as unknown[];
  const [runId, uptime, role, replicationId, isFileLoadable, eviction, maxMemory, flushes, rewrites] = reply;
  return {
    runId: String(runId),
    uptimeMs: Number(uptime) * 1000,
    role: String(role),
    replicationId: String(replicationId),
    isDurable: isFileLoadable === 1,
    hasRewritten: rewrites === 1,
    files: "",
    evicts: Number(maxMemory) > 0 && String(eviction) !== "noeviction",
    flushes: Number(flushes),
  };
}

/** Whether the server forces each change to its disk before it answers, also during a rewrite of its file, and the names of the file. */
async function requestFileSettings(calls: BoundedCalls): Promise<{ isSynced: boolean; files: string }> {
  const settings = {
    ...(await requestSettings(calls, "*append*")),
    ...(await requestSettings(calls, "dir")),
  };
  return {
    isSynced: settings["appendfsync"] === "always" && settings["no-appendfsync-on-rewrite"] === "no",
    files: JSON.stringify(["dir", "appenddirname", "appendfilename"].map((name) => settings[name])),
  };
}

/** Requests one pattern, because Redis before 7 takes no second one. A refused request has no settings. */
async function requestSettings(calls: BoundedCalls, pattern: string): Promise<Record<string, unknown>> {
  const reply = await calls.command("CONFIG", ["GET", pattern]).catch((error: unknown) => {
    if (!isServerReply((error as Error).cause)) {
      throw error;
    }
  });
  return Array.isArray(reply) ? objectOf(reply) : ((reply ?? {}) as Record<string, unknown>);
}

function objectOf(pairs: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    object[String(pairs[index])] = pairs[index + 1];
  }
  return object;
}
