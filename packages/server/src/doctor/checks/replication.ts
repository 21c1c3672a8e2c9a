import { numberOf, settingOf } from "../facts.ts";
import { formatDuration } from "../duration.ts";
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
          ? "with several active servers the last write wins, and two clients hold the lock"
          : "a replica grants no locks and shows a past state; a writable replica grants locks that its primary does not know",
      fix: "use the address of the primary, or of the sentinels (redis+sentinel:)",
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
          "a failover to a replica without the last writes loses recent locks, and these get a second holder",
        fix: "let grants wait for replicas (minReplicas), or use a quorum; check fencing tokens too",
      }),
    required === 0 &&
      finding("risk", "isolated-primary", {
        observed: "min-replicas-to-write is 0",
        impact: "a partitioned primary continues to grant locks, and so does its successor",
        fix: "let a primary without replicas refuse writes, within half of the TTL",
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
      impact: "a partitioned primary grants locks for that time, also after the promotion of its successor",
      fix: "use less than half of the TTL",
      command: `CONFIG SET min-replicas-max-lag ${Math.max(1, Math.floor(ttlMs / 2_000))}`,
    })
  );
};

/** With fewer replicas than `min-replicas-to-write` the primary refuses every write (`NOREPLICAS`). */
const tooFewReplicas: Check = (facts) => {
  const needed = Number(settingOf(facts, "min-replicas-to-write", "min-slaves-to-write") ?? 0);
  const good = numberOf(facts, "min_slaves_good_slaves") ?? numberOf(facts, "connected_slaves") ?? 0;
  return (
    facts.info.get("role") === "master" &&
    needed > good &&
    finding("critical", "too-few-replicas", {
      observed: `expected ${needed} replicas (min-replicas-to-write), got ${good}`,
      impact: "the server refuses writes, so no lock can be acquired or extended",
      fix: "start the replicas, or lower the setting to their number",
      command: `CONFIG SET min-replicas-to-write ${good}`,
    })
  );
};

const writableReplica: Check = (facts) => {
  const isWritable = settingOf(facts, "replica-read-only", "slave-read-only") === "no";
  return (
    isWritable &&
    finding(facts.info.get("role") === "master" ? "risk" : "critical", "writable-replica", {
      observed: "replica-read-only is no",
      impact: "as a replica this server grants locks that its primary does not know",
      fix: "make replicas read-only",
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
          observed: `${name} last acknowledged writes ${formatDuration(lagMs)} ago`,
          impact: "a failover to that replica loses the locks of that time",
          fix: "check that replica and its network",
        })
      );
    });

const multiMaster: Check = (facts) =>
  (facts.info.has("crdt_info") ||
    settingOf(facts, "multi-master") === "yes" ||
    settingOf(facts, "active-replica") === "yes") &&
  finding("critical", "multi-master", {
    observed: "it exchanges writes with other active servers",
    impact: "the last write wins, and two clients hold the lock",
    fix: "use a separate server for locks, or a quorum of independent servers",
  });

export const replicationChecks: readonly Check[] = [
  role,
  failover,
  lag,
  tooFewReplicas,
  writableReplica,
  laggingReplicas,
  multiMaster,
];
