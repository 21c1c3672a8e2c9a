import type { Engine } from "./engine.ts";
import type { FaultKind } from "./fault-kinds.ts";

/** The faults that each engine besides Redis has. */
export const commonFaults: readonly FaultKind[] = [
  "restart with its data",
  "freeze a server",
  "end connections",
  "freeze a client",
  "freeze a client past the TTL",
  "kill a client",
  "block an event loop",
  "step a client's clock",
  "refuse one link",
  "black hole on one link",
  "half-open connections",
  "slow connections",
  "lose a reply",
  "lose all replies",
  "break a lock",
];

/** The faults of several servers. */
export const severalFaults: readonly FaultKind[] = [
  "freeze a majority",
  "refuse all links",
  "black hole on all links",
];

/** The settings of engines whose servers keep every confirmed write, and whose grants are not handed over in memory. */
export const commonEngine: Pick<
  Engine,
  "omissions" | "maxTtlMs" | "failsOver" | "hasLatches" | "tokenSpread" | "faultsPerSecond" | "nodes"
> = {
  omissions: {},
  maxTtlMs: 3_000,
  failsOver: false,
  hasLatches: false,
  tokenSpread: 0,
  faultsPerSecond: 1.2,
  nodes: (count) => Array.from({ length: count }, () => ({ durable: true })),
};
