import { edit, lua, redis, type Mutant } from "./mutant.ts";

/**
 * The library with its bounds of sizes and counts set to `bound`: it is as correct as with the shipped ones, and what happens rarely
 * at those happens all the time.
 */
export function withBounds(bound: 1 | 2 | 3): Pick<Mutant, "name" | "edits"> {
  const n = String(bound);
  return {
    name: `bounds-${n}`,
    edits: [
      edit("local/acquisition.ts", "const longestRun = 64;", `const longestRun = ${n};`),
      edit("runtime/timer-queue.ts", "const mostAtOnce = 256;", `const mostAtOnce = ${n};`),
      edit("options.ts", "{ max = 16, maxMs", `{ max = ${n}, maxMs`),
      redis("protocol/keys", "const mostRecent = 1_024;", `const mostRecent = ${n};`),
      edit("runtime/token-map.ts", "const fewest = 16;", "const fewest = 2;"),
      redis("server/batch", "const largestBatch = 128;", `const largestBatch = ${n};`),
      redis("server/batch", "const parts = 2;", `const parts = ${n};`),
      redis("server/batch", "const smallestPart = 2;", `const smallestPart = ${n};`),
      redis("server/batch", "const mostCalls = 8;", `const mostCalls = ${n};`),
      lua("common/latch", "local told_at_once = 256", `local told_at_once = ${n}`),
    ].filter(({ search, replace }) => search !== replace),
  };
}
