import { type ServerClock, startRedis } from "@holdfast/test-kit";

import { makeClocks } from "../../support/clocks.ts";
import { durable, startNodes, type QuorumNode } from "../../support/quorum-servers.ts";

export interface Timed {
  readonly nodes: readonly QuorumNode[];
  readonly clocks: readonly ServerClock[];
}

/** Nodes that each have a clock of their own. */
export async function startTimed(count: number, args: readonly string[] = durable): Promise<Timed> {
  const clocks = await makeClocks(count);
  const nodes = await startNodes(count, {
    args,
    start: (given, index) => startRedis({ args: given, env: clocks[index]?.env ?? {} }),
  });
  return { nodes, clocks };
}
