import { edit, lua, redis, type Mutant } from "./mutant.ts";

/**
 * The library with all bounds on sizes and counts set to `bound`. It is as correct as with the usual bounds, but rare cases happen all the
 * time.
 */
export function withBounds(bound: 1 | 2 | 3): Pick<Mutant, "name" | "edits"> {
  const n = String(bound);
  return {
    name: `bounds-${n}`,
    edits: [
      edit("local/acquire-request.ts", "const maxHandovers = 64;", `const maxHandovers = ${n};`),
      edit("runtime/timer-queue.ts", "const mostAtOnce = 256;", `const mostAtOnce = ${n};`),
      edit("options.ts", "{ max = 16, maxMs", `{ max = ${n}, maxMs`),
      edit("local/coordinator.ts", "const idleQueuesKept = 128;", `const idleQueuesKept = ${n};`),
      redis("protocol/keys", "const maxRecent = 128;", `const maxRecent = ${n};`),
      edit("runtime/token-map.ts", "const minSize = 16;", "const minSize = 2;"),
      redis("server/batch", "const maxBatch = 128;", `const maxBatch = ${n};`),
      redis("server/batch", "const callsInFlight = 2;", `const callsInFlight = ${n};`),
      redis("server/batch", "const minCallSize = 2;", `const minCallSize = ${n};`),
      redis("server/batch", "const maxCalls = 8;", `const maxCalls = ${n};`),
      lua("common/latch", "local notify_batch_size = 256", `local notify_batch_size = ${n}`),
    ].filter(({ search, replace }) => search !== replace),
  };
}
