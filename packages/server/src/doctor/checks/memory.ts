import { numberOf, settingOf } from "../facts.ts";
import { finding, type Check } from "./check.ts";

const eviction: Check = (facts) => {
  const policy = facts.info.get("maxmemory_policy") ?? settingOf(facts, "maxmemory-policy");
  const limit = numberOf(facts, "maxmemory") ?? Number(settingOf(facts, "maxmemory") ?? 0);
  if (policy === undefined || policy === "noeviction") {
    return undefined;
  }
  const isVolatile = policy.startsWith("volatile");
  return finding(limit > 0 ? "critical" : "risk", "eviction", {
    observed: `maxmemory-policy is ${policy}, maxmemory is ${limit}`,
    impact: `with full memory the server evicts ${isVolatile ? "keys with a TTL, which locks are" : "keys, locks among them"}, and evicted locks get a second holder`,
    fix: "disable evictions, or use a separate server for locks",
    command: "CONFIG SET maxmemory-policy noeviction",
  });
};

const evicted: Check = (facts) => {
  const count = numberOf(facts, "evicted_keys") ?? 0;
  return (
    count > 0 &&
    finding("critical", "evicted-keys", {
      observed: `${count} keys were evicted since the start`,
      impact: "the server may have evicted held locks",
      fix: "set maxmemory-policy noeviction, and find the data that fills the memory",
    })
  );
};

const nearlyFull: Check = (facts) => {
  const [used, limit] = [numberOf(facts, "used_memory") ?? 0, numberOf(facts, "maxmemory") ?? 0];
  return (
    limit > 0 &&
    used / limit > 0.9 &&
    finding("risk", "memory-nearly-full", {
      observed: `${Math.round((100 * used) / limit)} % of maxmemory is used`,
      impact:
        "with full memory the server refuses acquires. Renewals, releases and waiters in its queues continue",
      fix: "raise maxmemory, or remove other data",
    })
  );
};

const fragmented: Check = (facts) => {
  const ratio = numberOf(facts, "mem_fragmentation_ratio") ?? 1;
  const used = numberOf(facts, "used_memory") ?? 0;
  return (
    ratio < 0.9 &&
    used > 100_000_000 &&
    finding("perf", "swapping", {
      observed: `mem_fragmentation_ratio is ${ratio}: part of the memory is swapped out`,
      impact: "replies are slow, and a late renewal loses the lock",
      fix: "give the machine more memory, or store less on the server",
    })
  );
};

export const memoryChecks: readonly Check[] = [eviction, evicted, nearlyFull, fragmented];
