import { lockState, type Holder, type LockState, type NodeState } from "../../lock-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { NacosClient } from "./client.ts";
import type { Grant, LockDocument } from "./document.ts";
import { nacosFailure } from "./errors.ts";

const shownWaiters = 100;

/** @param readAt the time of the servers at the reading, ms since 1970 */
export function holderOf(
  { owner, reason, labels, fencingToken, since }: Grant,
  remainingMs: number,
  readAt: number | undefined,
): Holder {
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: BigInt(fencingToken),
    remainingMs,
    ...(typeof since === "number" ? { since } : {}),
    ...(typeof since === "number" && readAt !== undefined ? { heldMs: Math.max(0, readAt - since) } : {}),
  };
}

export function stateOf({ key, queue }: LockDocument, holder: Holder | undefined): LockState {
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: holder ? [holder] : [],
    waiters: queue.slice(0, shownWaiters).map(({ owner }, position) => ({ owner, position })),
    waiterCount: queue.length,
    remainingMs: holder?.remainingMs ?? null,
    fencingToken: holder?.fencingToken ?? null,
    nodes: [{ node: "nacos", held: holder !== undefined }],
  });
}

/** The state of one server. */
export async function nodeOf(client: NacosClient, server: string, clock: Clock): Promise<NodeState> {
  const sent = clock.now();
  const common = {
    node: new URL(server).host,
    replication: null,
    runId: null,
    uptimeMs: null,
    quarantine: null,
    notifications: "unavailable",
  } as const;
  try {
    const { version = null, mode = null, time } = await client.state(server);
    const clockOffsetMs = time === undefined ? null : time - clock.wall();
    const latencyMs = clock.now() - sent;
    return { ...common, reachable: true, latencyMs, version, role: mode, clockOffsetMs, error: null };
  } catch (error) {
    const { message } = nacosFailure(error);
    const unknown = { latencyMs: null, version: null, role: null, clockOffsetMs: null };
    return { ...common, ...unknown, reachable: false, error: message };
  }
}
