import { numberOf, settingOf } from "../facts.ts";
import { shown } from "../../duration.ts";
import { found, type Check } from "./check.ts";

const role: Check = (facts) => {
  const told = facts.info.get("role");
  return (
    told !== undefined &&
    told !== "master" &&
    found("danger", "not-a-primary", {
      observed: `its role is ${told}`,
      danger:
        told === "active-replica"
          ? "with several active servers the last writer wins, and both believe that they hold the lock"
          : "it does not decide: it shows what its primary had, and takes no lock; a writable one grants locks that nobody else knows",
      advice: "name the primary, or let sentinels name it (redis+sentinel:)",
    })
  );
};

const failover: Check = (facts, { address, minReplicas }) => {
  const replicas = numberOf(facts, "connected_slaves") ?? 0;
  const needed = Number(settingOf(facts, "min-replicas-to-write", "min-slaves-to-write") ?? 0);
  const follows = address.topology === "sentinel" || address.topology === "cluster";
  if (address.topology === "quorum" || (replicas === 0 && !follows)) {
    return undefined;
  }
  return [
    minReplicas === 0 &&
      found("risk", "failover-loses-locks", {
        observed: `${replicas} replicas, and no grant waits for them`,
        danger:
          "a failover to a replica that had not got the last writes forgets fresh locks: a second holder",
        advice: "let grants wait for replicas (minReplicas), or use a quorum; and check fencing tokens",
      }),
    needed === 0 &&
      found("risk", "isolated-primary", {
        observed: "min-replicas-to-write is 0",
        danger: "a primary that is cut off goes on granting locks while its successor grants them as well",
        advice: "let it stop writing when it has lost its replicas, sooner than half of the TTL",
        command: "CONFIG SET min-replicas-to-write 1",
      }),
  ];
};

const lag: Check = (facts, { ttlMs }) => {
  const needed = Number(settingOf(facts, "min-replicas-to-write", "min-slaves-to-write") ?? 0);
  const lagMs = Number(settingOf(facts, "min-replicas-max-lag", "min-slaves-max-lag") ?? 0) * 1_000;
  return (
    needed > 0 &&
    lagMs > ttlMs / 2 &&
    found("risk", "late-isolation", {
      observed: `min-replicas-max-lag is ${shown(lagMs)}, the TTL ${shown(ttlMs)}`,
      danger: "a primary that is cut off grants locks for that long after its successor may have begun",
      advice: "less than half of the TTL",
      command: `CONFIG SET min-replicas-max-lag ${Math.max(1, Math.floor(ttlMs / 2_000))}`,
    })
  );
};

const writableReplica: Check = (facts) => {
  const isWritable = settingOf(facts, "replica-read-only", "slave-read-only") === "no";
  return (
    isWritable &&
    found(facts.info.get("role") === "master" ? "risk" : "danger", "writable-replica", {
      observed: "replica-read-only is no",
      danger: "as a replica it grants locks that its primary knows nothing of",
      advice: "replicas only read",
      command: "CONFIG SET replica-read-only yes",
    })
  );
};

const laggingReplicas: Check = (facts, { ttlMs }) =>
  [...facts.info]
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([name, told]) => {
      const lagMs = Number(/lag=(\d+)/.exec(told)?.[1] ?? 0) * 1_000;
      return (
        lagMs > Math.min(10_000, ttlMs / 2) &&
        found("risk", "lagging-replica", {
          observed: `${name} was last heard of ${shown(lagMs)} ago`,
          danger: "a failover to it forgets the locks of that time",
          advice: "look at the network between them and at that replica",
        })
      );
    });

const multiMaster: Check = (facts) =>
  (facts.info.has("crdt_info") ||
    settingOf(facts, "multi-master") === "yes" ||
    settingOf(facts, "active-replica") === "yes") &&
  found("danger", "multi-master", {
    observed: "it shares its writes with other servers that write as well",
    danger: "the last writer wins, and both believe that they hold the lock",
    advice: "a server of its own for locks, or a quorum of independent ones",
  });

export const replicationChecks: readonly Check[] = [
  role,
  failover,
  lag,
  writableReplica,
  laggingReplicas,
  multiMaster,
];
