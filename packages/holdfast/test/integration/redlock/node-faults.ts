import type { Locks } from "holdfast";
import { limitMs, type Proxy, waitUntil } from "@holdfast/test-kit";

import { durable, holders, newKey, type QuorumNode } from "../../support/quorum-servers.ts";

export interface NodeFault {
  readonly how: string;
  begin(nodes: readonly QuorumNode[], proxies: readonly (readonly Proxy[])[]): Promise<void>;
  end(nodes: readonly QuorumNode[], proxies: readonly (readonly Proxy[])[]): Promise<void>;
}

export const killed: NodeFault = {
  how: "killed",
  begin: async (nodes) => void (await Promise.all(nodes.map((node) => node.kill()))),
  end: async (nodes) => void (await Promise.all(nodes.map((node) => node.restart(durable)))),
};
export const frozen: NodeFault = {
  how: "frozen",
  begin: async (nodes) => {
    for (const node of nodes) {
      node.freeze();
    }
  },
  end: async (nodes) => {
    for (const node of nodes) {
      node.thaw();
    }
  },
};
export const slow: NodeFault = {
  how: "answering after a second",
  begin: async (_nodes, proxies) => {
    setDelay(proxies, 500); // in each direction
  },
  end: async (_nodes, proxies) => {
    setDelay(proxies, 0);
    for (const proxy of proxies.flat()) {
      proxy.cut(); // otherwise new bytes would overtake the delayed ones
    }
  },
};

/** Waits until every node grants again. */
export async function awaitAllNodesGrant(locks: Locks, nodes: readonly QuorumNode[]): Promise<void> {
  const key = newKey();
  await waitUntil(
    async () => {
      const lease = await locks.tryAcquire(key, { ttlMs: 60_000 }).catch(() => null);
      const granted = await holders(nodes, key);
      await lease?.release();
      return lease !== null && granted.every((holder) => holder !== null);
    },
    "every node grants again",
    limitMs(20_000),
  );
}

function setDelay(proxies: readonly (readonly Proxy[])[], ms: number): void {
  for (const proxy of proxies.flat()) {
    proxy.delay(ms);
  }
}
