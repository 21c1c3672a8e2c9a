import { setImmediate as turn } from "node:timers/promises";
import type { Memory } from "../run/protocol.ts";

/**
 * The memory of this process after garbage collection. Several collections run, because objects that finalizers release are freed
 * only by the next one.
 */
export async function measureMemory(): Promise<Memory> {
  const { gc } = globalThis;
  if (!gc) throw new Error("was not started with --expose-gc");
  for (let collection = 0; collection < 3; collection += 1) {
    gc();
    await turn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { used: heapUsed + external, resident: rss };
}
