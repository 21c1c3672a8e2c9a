import type { Clock, Instant } from "../../../runtime/clock.ts";
import type { NodeState } from "../../../lock-state.ts";
import { parseReplication } from "./replication.ts";

/** What the script `hello` answered. */
export interface HandshakeReply {
  readonly serverMicros: number;
  readonly receivers: number;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  readonly uptimeMs: number;
}

export function parseHandshake(answer: readonly unknown[]): HandshakeReply {
  const [serverMicros, receivers, runId, version, role, uptime] = answer;
  return {
    serverMicros: Number(serverMicros),
    receivers: Number(receivers),
    runId: String(runId),
    version: String(version),
    role: String(role),
    uptimeMs: Number(uptime) * 1000,
  };
}

interface NodeStateSource {
  readonly node: string;
  readonly clock: Clock;
  readonly sent: Instant;
  readonly notifications: NodeState["notifications"];
}

/** What a server says of itself when it is greeted, or why it does not. */
export async function nodeStateOf(
  { node, clock, sent, notifications }: NodeStateSource,
  ask: { handshake: () => Promise<HandshakeReply>; replication: () => Promise<unknown> },
): Promise<NodeState> {
  try {
    const handshake = ask.handshake();
    const replicating = ask.replication().catch(() => undefined);
    const { serverMicros, version, role, runId, uptimeMs } = await handshake;
    const latencyMs = clock.now() - sent.now;
    const clockOffsetMs = serverMicros / 1000 - (sent.wall + latencyMs / 2);
    const replication = parseReplication(await replicating);
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
