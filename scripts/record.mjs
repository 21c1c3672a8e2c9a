// The common parts of the records in verify/records: one line of JSON for each run of the gate (gate.jsonl) or of a part of
// `npm run verify` (verify.jsonl).

import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** @param file a name in verify/records */
export function append(file, record) {
  const path = join(root, "verify", "records", file);
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `${JSON.stringify(record)}\n`);
}

/** The commit, with a plus if the tree differs from it, the date, the machine, and the versions of the servers. */
export function circumstances() {
  const { version } = JSON.parse(readFileSync(join(root, "packages", "holdfast", "package.json"), "utf8"));
  const isChanged = output("git", "status", "--porcelain", "--", ".", ":!verify/records") !== "";
  return {
    commit: `${output("git", "rev-parse", "--short=8", "HEAD")}${isChanged ? "+" : ""}`,
    version,
    date: new Date().toISOString().slice(0, 19).replace("T", " "),
    machine: {
      cores: availableParallelism(),
      cpu: cpus()[0]?.model,
      node: process.versions.node,
      load: loadavg()[0],
    },
    servers: serverVersions(),
  };
}

/** Seconds of CPU time of this process and of those of its descendants that have ended. Undefined except on Linux. */
export function cpuSeconds() {
  if (!existsSync("/proc/self/stat")) return undefined;
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticksPerSecond = 100;
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
}

function serverVersions() {
  const postgres = ["17", "16", "15", "14"].map((version) => `/usr/lib/postgresql/${version}/bin/postgres`);
  const programs = {
    redis: ["redis-server", "--version"],
    postgres: [postgres.find(existsSync) ?? "postgres", "--version"],
    mariadb: ["mariadbd", "--version"],
    etcd: ["etcd", "--version"],
    zookeeper: ["dpkg-query", "--show", "--showformat=${Version}", "zookeeper"],
    chromium: ["chromium", "--version"],
  };
  const versions = Object.entries(programs).map(([name, command]) => {
    return [name, /\d+(\.\d+)+/.exec(output(...command))?.[0]];
  });
  return Object.fromEntries(versions.filter(([, version]) => version !== undefined));
}

function output(program, ...args) {
  return spawnSync(program, args, { cwd: root, encoding: "utf8" }).stdout?.trim() ?? "";
}
