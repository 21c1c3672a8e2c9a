import { connect } from "node:net";

import type { NodeState } from "../../lock-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { zooKeeperFailure } from "./wire/errors.ts";
import { nameOf, type HostAndPort } from "./wire/host.ts";

const timeoutMs = 2_000;
const maxReplyBytes = 16_384;

/** The state of one server, by its command `srvr`, which is allowed by default. */
export async function nodeOf(host: HostAndPort, clock: Clock, isNotified: boolean): Promise<NodeState> {
  const sent = clock.now();
  const common = {
    node: nameOf(host),
    replication: null,
    runId: null,
    uptimeMs: null,
    clockOffsetMs: null,
    quarantine: null,
    notifications: isNotified ? "verified" : "unverified",
  } as const;
  try {
    const reply = await ask(host, "srvr", clock);
    const version = /^Zookeeper version: ([^\s,-]+)/m.exec(reply)?.[1] ?? null;
    const role = /^Mode: (\S+)/m.exec(reply)?.[1] ?? null;
    return { ...common, reachable: true, latencyMs: clock.now() - sent, version, role, error: null };
  } catch (error) {
    const { message } = zooKeeperFailure(error);
    return { ...common, reachable: false, latencyMs: null, version: null, role: null, error: message };
  }
}

/** Sends a command of four letters on a connection of its own. */
async function ask({ host, port }: HostAndPort, command: string, clock: Clock): Promise<string> {
  const socket = connect({ host, port });
  try {
    const reply = new Promise<string>((resolve, reject) => {
      let text = "";
      socket.setEncoding("utf8");
      socket.on("data", (chunk: string) => (text = (text + chunk).slice(0, maxReplyBytes)));
      socket.once("end", () => resolve(text));
      socket.once("error", reject);
      socket.end(command);
    });
    const text = await withTimeout(clock, timeoutMs, reply);
    if (text === undefined || text === "") {
      throw new Error(`no reply within ${timeoutMs} ms`);
    }
    return text;
  } finally {
    socket.destroy();
  }
}
