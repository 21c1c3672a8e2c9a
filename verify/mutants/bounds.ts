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
      edit("acquire.ts", "const longestRun = 64;", `const longestRun = ${n};`),
      edit("options.ts", "{ max = 16, maxMs", `{ max = ${n}, maxMs`),
      redis("keys", "const mostRecent = 1_024;", `const mostRecent = ${n};`),
      redis("token-table", "const fewest = 16;", "const fewest = 2;"),
      redis("batch", "const largestBatch = 128;", `const largestBatch = ${n};`),
      redis("batch", "const parts = 2;", `const parts = ${n};`),
      redis("batch", "const smallestPart = 2;", `const smallestPart = ${n};`),
      redis("batch", "const mostCalls = 8;", `const mostCalls = ${n};`),
      lua("_latch", "local told_at_once = 256", `local told_at_once = ${n}`),
    ].filter(({ search, replace }) => search !== replace),
  };
}
