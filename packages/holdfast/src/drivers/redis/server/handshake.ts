import type { Clock, Moment } from "../../../runtime/clock.ts";
import type { NodeState } from "../../../lock-state.ts";
import { readReplication } from "./replication.ts";

/** What the script `hello` answered. */
export interface Greeting {
  readonly serverMicros: number;
  readonly receivers: number;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  readonly uptimeMs: number;
}

export function readGreeting(answer: readonly unknown[]): Greeting {
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

interface View {
  readonly node: string;
  readonly clock: Clock;
  readonly sent: Moment;
  readonly notifications: NodeState["notifications"];
}

/** What a server says of itself when it is greeted, or why it does not. */
export async function stateOf(
  { node, clock, sent, notifications }: View,
  ask: { greet: () => Promise<Greeting>; replication: () => Promise<unknown> },
): Promise<NodeState> {
  try {
    const greeted = ask.greet();
    const replicating = ask.replication().catch(() => undefined);
    const { serverMicros, version, role, runId, uptimeMs } = await greeted;
    const latencyMs = clock.now() - sent.now;
    const clockOffsetMs = serverMicros / 1000 - (sent.wall + latencyMs / 2);
    const replication = readReplication(await replicating);
    const told = { latencyMs, version, role, replication, runId, uptimeMs, clockOffsetMs };
    return { node, reachable: true, ...told, notifications, quarantine: null, error: null };
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
