import type { Clock, Instant } from "../../../runtime/clock.ts";
import type { NodeState, Replication } from "../../../lock-state.ts";
import { noScriptReply } from "./errors.ts";
import { parseReplication } from "./replication.ts";

/** The reply of the script `handshake`. */
export interface HandshakeReply {
  readonly serverMicros: number;
  readonly receivers: number;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  readonly uptimeMs: number;
  readonly replication: Replication | null;
}

export function parseHandshake(answer: readonly unknown[]): HandshakeReply {
  if (!Array.isArray(answer)) {
    throw noScriptReply(answer);
  }
  const [serverMicros, receivers, runId, version, role, uptime, replication] = answer;
  return {
    serverMicros: Number(serverMicros),
    receivers: Number(receivers),
    runId: String(runId),
    version: String(version),
    role: String(role),
    uptimeMs: Number(uptime) * 1000,
    replication: parseReplication(replication),
  };
}

/** Whether the server has the commands of Redis 7, with sharded pub/sub. */
export function isRedis7({ version }: HandshakeReply): boolean {
  return Number.parseInt(version, 10) >= 7;
}

interface NodeStateSource {
  readonly node: string;
  readonly clock: Clock;
  readonly sent: Instant;
  readonly notifications: NodeState["notifications"];
}

/** The state of a server as its handshake reports it. If the handshake fails, the state has the error instead. */
export async function nodeStateOf(
  { node, clock, sent, notifications }: NodeStateSource,
  handshake: () => Promise<HandshakeReply>,
): Promise<NodeState> {
  try {
    const { serverMicros, version, role, runId, uptimeMs, replication } = await handshake();
    const latencyMs = clock.now() - sent.now;
    const clockOffsetMs = serverMicros / 1000 - (sent.wall + latencyMs / 2);
    const reply = { latencyMs, version, role, replication, runId, uptimeMs, clockOffsetMs };
    return { node, reachable: true, ...reply, notifications, quarantine: null, error: null };
  } catch (error) {
    const unknown = {
      latencyMs: null,
      version: null,
      role: null,
      replication: null,
      runId: null,
      uptimeMs: null,
      clockOffsetMs: null,
    };
    return { node, reachable: false, ...unknown, notifications, quarantine: null, error: String(error) };
  }
}
