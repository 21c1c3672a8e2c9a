import type { Locks } from "holdfast";
import type { Proxy } from "@holdfast/test-kit";

import { connect, holders, open, type QuorumNode } from "../../support/quorum-servers.ts";

/** Longer than any pause here, so that a paused node does not time out. */
export const patient = { nodeTimeoutMs: 10_000, commandTimeoutMs: 10_000 };

/** @param isLibraryRepeating whether the client library sends unanswered commands once more */
export function openThrough(proxies: readonly Proxy[], isLibraryRepeating: boolean): Locks {
  const clients = proxies.map((proxy) =>
    connect(proxy, { autoResendUnfulfilledCommands: isLibraryRepeating }),
  );
  return open(proxies, patient, {}, clients);
}

export async function grantCount(nodes: readonly QuorumNode[], key: string): Promise<number> {
  return (await holders(nodes, key)).filter((holder) => holder !== null).length;
}

export function pauseAll(proxies: readonly Proxy[], flow: "requests" | "answers"): void {
  for (const proxy of proxies) {
    proxy.pause(flow);
  }
}

export function resumeAll(proxies: readonly Proxy[], flow: "requests" | "answers"): void {
  for (const proxy of proxies) {
    proxy.resume(flow);
  }
}

export function cutAll(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.cut();
  }
}
