import type { NodeState } from "../../lock-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { etcdFailure } from "./errors.ts";
import type { Gateway } from "./gateway.ts";

interface StatusReply {
  readonly header: { readonly member_id: string };
  readonly version: string;
  readonly leader?: string;
}

/** The state of the member at one endpoint. */
export async function nodeOf(
  gateway: Gateway,
  endpoint: string,
  clock: Clock,
  isNotified: boolean,
): Promise<NodeState> {
  const sent = clock.now();
  const common = {
    node: new URL(endpoint).host,
    replication: null,
    runId: null,
    uptimeMs: null,
    clockOffsetMs: null,
    quarantine: null,
    notifications: isNotified ? "verified" : "unverified",
  } as const;
  try {
    const { version, header, leader } = await gateway.ask<StatusReply>(endpoint, "maintenance/status");
    const role = leader === undefined ? null : leader === header.member_id ? "leader" : "follower";
    return { ...common, reachable: true, latencyMs: clock.now() - sent, version, role, error: null };
  } catch (error) {
    const { message } = etcdFailure(error);
    return { ...common, reachable: false, latencyMs: null, version: null, role: null, error: message };
  }
}
