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
    impact: `at the limit of its memory the server throws ${isVolatile ? "keys with a TTL away, and those are the locks" : "keys away, locks among them"}: a second holder`,
    fix: "keep what is in it, or give the locks a server of their own",
    command: "CONFIG SET maxmemory-policy noeviction",
  });
};

const evicted: Check = (facts) => {
  const count = numberOf(facts, "evicted_keys") ?? 0;
  return (
    count > 0 &&
    finding("critical", "evicted-keys", {
      observed: `${count} keys were evicted since the start`,
      impact: "locks may have vanished while they were held",
      fix: "set maxmemory-policy noeviction and find out what fills the memory",
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
      impact: "when it is full no lock can be had, and held ones are lost, as their renewal is refused",
      fix: "raise maxmemory, or remove what fills it",
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
      impact: "answers come late; a renewal that comes too late loses the lock",
      fix: "give the machine more memory, or the server less to keep",
    })
  );
};

export const memoryChecks: readonly Check[] = [eviction, evicted, nearlyFull, fragmented];
