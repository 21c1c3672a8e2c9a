import { numberOf, settingOf, type ServerFacts } from "../facts.ts";
import { formatDuration } from "../../duration.ts";
import { finding, type Check } from "./check.ts";

/** Whether a restart forgets nothing. */
function isDurable(facts: ServerFacts): boolean {
  return facts.info.get("aof_enabled") === "1" && settingOf(facts, "appendfsync") === "always";
}

const persistence: Check = (facts, { address, maxTtlMs }) => {
  if (facts.info.get("aof_enabled") === undefined || isDurable(facts)) {
    return undefined;
  }
  const hasLog = facts.info.get("aof_enabled") === "1";
  const observed = hasLog
    ? `appendfsync is ${settingOf(facts, "appendfsync") ?? "not told"}`
    : `no append-only file${settingOf(facts, "save") ? "; snapshots from time to time" : ""}`;
  if (address.topology === "quorum") {
    const isGuarded = address.query.get("restartGuard") !== "off";
    return finding(isGuarded ? "info" : "critical", "persistence", {
      observed,
      impact: isGuarded
        ? `after a restart this node has forgotten its votes, and does not vote for ${formatDuration(maxTtlMs + 3_000)}`
        : "after a restart this node has forgotten its votes and votes at once, as restartGuard is off: two holders",
      fix: isGuarded
        ? "nothing has to be done; with appendfsync always it votes at once"
        : "leave restartGuard at auto",
    });
  }
  return finding(hasLog ? "risk" : "critical", "persistence", {
    observed,
    impact: hasLog
      ? "a crash of the machine forgets the locks of the last second: a second holder"
      : "a restart forgets all locks, or those since the last snapshot: a second holder",
    fix: "write every change to the disk before it is answered, or use a quorum; and check fencing tokens",
    command: "CONFIG SET appendonly yes; CONFIG SET appendfsync always",
  });
};

const restarted: Check = (facts, { address, ttlMs, maxTtlMs }) => {
  const uptimeMs = (numberOf(facts, "uptime_in_seconds") ?? Infinity) * 1_000;
  const longestMs = address.topology === "quorum" ? maxTtlMs : ttlMs;
  if (uptimeMs > longestMs || isDurable(facts)) {
    return undefined;
  }
  const isGuarded = address.topology === "quorum" && address.query.get("restartGuard") !== "off";
  return finding(isGuarded ? "info" : "critical", "restarted", {
    observed: `it started ${formatDuration(uptimeMs)} ago`,
    impact: isGuarded
      ? "it may have forgotten votes of before, and does not vote yet"
      : `locks of before that it forgot may be held still, for up to ${formatDuration(longestMs)}: a second holder now`,
    fix: isGuarded
      ? "wait; a majority of the others votes"
      : "let no work begin that the old holders may still do",
  });
};

const writesFail: Check = (facts) =>
  (["aof_last_write_status", "rdb_last_bgsave_status", "aof_last_bgrewrite_status"] as const).map((name) => {
    const status = facts.info.get(name);
    return (
      status !== undefined &&
      status !== "ok" &&
      finding("risk", "disk-writes-fail", {
        observed: `${name} is ${status}`,
        impact:
          "the server may refuse writes (stop-writes-on-bgsave-error): no lock can be had, and held ones are lost",
        fix: "look at the disk and at the server's log",
      })
    );
  });

const rewrites: Check = (facts) =>
  facts.info.get("aof_enabled") === "1" &&
  settingOf(facts, "no-appendfsync-on-rewrite") === "yes" &&
  finding("risk", "no-fsync-on-rewrite", {
    observed: "no-appendfsync-on-rewrite is yes",
    impact: "while the file is rewritten nothing is forced to the disk: a crash then forgets locks",
    fix: "force it also then",
    command: "CONFIG SET no-appendfsync-on-rewrite no",
  });

const forks: Check = (facts, { ttlMs }) => {
  const forkMs = (numberOf(facts, "latest_fork_usec") ?? 0) / 1_000;
  return (
    forkMs > ttlMs / 20 &&
    finding("perf", "slow-fork", {
      observed: `the last fork stopped the server for ${formatDuration(forkMs)}`,
      impact: "renewals wait for it; with a short TTL locks are lost by it",
      fix: "snapshots on a replica, a smaller server, no transparent huge pages",
    })
  );
};

export const persistenceChecks: readonly Check[] = [persistence, restarted, writesFail, rewrites, forks];
