import { numberOf, settingOf } from "../facts.ts";
import { formatDuration } from "../../duration.ts";
import { finding, type Check } from "./check.ts";

const role: Check = (facts) => {
  const answer = facts.info.get("role");
  return (
    answer !== undefined &&
    answer !== "master" &&
    finding("critical", "not-a-primary", {
      observed: `its role is ${answer}`,
      impact:
        answer === "active-replica"
          ? "with several active servers the last writer wins, and both believe that they hold the lock"
          : "it does not decide: it shows what its primary had, and takes no lock; a writable one grants locks that nobody else knows",
      fix: "name the primary, or let sentinels name it (redis+sentinel:)",
    })
  );
};

const failover: Check = (facts, { address, minReplicas }) => {
  const replicas = numberOf(facts, "connected_slaves") ?? 0;
  const required = Number(settingOf(facts, "min-replicas-to-write", "min-slaves-to-write") ?? 0);
  const follows = address.topology === "sentinel" || address.topology === "cluster";
  if (address.topology === "quorum" || (replicas === 0 && !follows)) {
    return undefined;
  }
  return [
    minReplicas === 0 &&
      finding("risk", "failover-loses-locks", {
        observed: `${replicas} replicas, and no grant waits for them`,
        impact:
          "a failover to a replica that had not got the last writes forgets fresh locks: a second holder",
        fix: "let grants wait for replicas (minReplicas), or use a quorum; and check fencing tokens",
      }),
    required === 0 &&
      finding("risk", "isolated-primary", {
        observed: "min-replicas-to-write is 0",
        impact: "a primary that is cut off goes on granting locks while its successor grants them as well",
        fix: "let it stop writing when it has lost its replicas, sooner than half of the TTL",
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
    finding("risk", "late-isolation", {
      observed: `min-replicas-max-lag is ${formatDuration(lagMs)}, the TTL ${formatDuration(ttlMs)}`,
      impact: "a primary that is cut off grants locks for that long after its successor may have begun",
      fix: "less than half of the TTL",
      command: `CONFIG SET min-replicas-max-lag ${Math.max(1, Math.floor(ttlMs / 2_000))}`,
    })
  );
};

const writableReplica: Check = (facts) => {
  const isWritable = settingOf(facts, "replica-read-only", "slave-read-only") === "no";
  return (
    isWritable &&
    finding(facts.info.get("role") === "master" ? "risk" : "critical", "writable-replica", {
      observed: "replica-read-only is no",
      impact: "as a replica it grants locks that its primary knows nothing of",
      fix: "replicas only read",
      command: "CONFIG SET replica-read-only yes",
    })
  );
};

const laggingReplicas: Check = (facts, { ttlMs }) =>
  [...facts.info]
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([name, value]) => {
      const lagMs = Number(/lag=(\d+)/.exec(value)?.[1] ?? 0) * 1_000;
      return (
        lagMs > Math.min(10_000, ttlMs / 2) &&
        finding("risk", "lagging-replica", {
          observed: `${name} was last heard of ${formatDuration(lagMs)} ago`,
          impact: "a failover to it forgets the locks of that time",
          fix: "look at the network between them and at that replica",
        })
      );
    });

const multiMaster: Check = (facts) =>
  (facts.info.has("crdt_info") ||
    settingOf(facts, "multi-master") === "yes" ||
    settingOf(facts, "active-replica") === "yes") &&
  finding("critical", "multi-master", {
    observed: "it shares its writes with other servers that write as well",
    impact: "the last writer wins, and both believe that they hold the lock",
    fix: "a server of its own for locks, or a quorum of independent ones",
  });

export const replicationChecks: readonly Check[] = [
  role,
  failover,
  lag,
  writableReplica,
  laggingReplicas,
  multiMaster,
];
