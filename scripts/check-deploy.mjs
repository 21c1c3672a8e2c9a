// Checks the workflows and the files of deploy/ with the tools of their fields, as far as they are installed.
// A check without its tool is skipped and named. With `--all` it fails.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const chart = "deploy/helm/holdfast";
const scratch = mkdtempSync(join(tmpdir(), "holdfast-deploy-"));

/** Each check is a list of commands of one tool. */
const checks = [
  ["workflows", [["actionlint"]]],
  ["Helm chart", [["helm", "lint", "--strict", chart], template(), template("--set", everything())]],
  [
    "Prometheus",
    [["promtool", "check", "config", "--syntax-only", "deploy/compose/prometheus/prometheus.yml"]],
  ],
  ["systemd unit", [["systemd-analyze", "verify", unit()]]],
  ["Compose file", [["docker", "compose", "--file", composeFile(), "config", "--quiet"]]],
  ["Dockerfile", [["docker", "build", "--check", "--file", "deploy/Dockerfile", "."]]],
];

try {
  for (const [name, commands] of checks) check(name, commands);
} finally {
  rmSync(scratch, { recursive: true });
}

function check(name, commands) {
  if (!isUsable(commands[0])) {
    const line = `${name}: ${commands[0][0]} is not usable here`;
    console.error(process.argv.includes("--all") ? line : `${line}; skipped`);
    if (process.argv.includes("--all")) process.exitCode = 1;
    return;
  }
  for (const [tool, ...args] of commands) {
    const { status, stdout, stderr } = run(tool, args);
    console.log(`${name}: ${tool} ${status === 0 ? "found no error" : `failed\n${stdout}${stderr}`}`);
    if (status !== 0) process.exitCode = 1;
  }
}

/** A client of Docker may be installed without its plugins or its daemon. */
function isUsable([tool, subcommand]) {
  const probes = { compose: ["compose", "version"], build: ["buildx", "version"] };
  const probe = tool === "docker" ? probes[subcommand] : ["--help"];
  return run(tool, probe).error === undefined && (tool !== "docker" || run(tool, probe).status === 0);
}

function run(tool, args) {
  return spawnSync(tool, args, { cwd: root, encoding: "utf8" });
}

function template(...options) {
  return ["helm", "template", "locks", chart, "--kube-version", "1.31.0", ...options];
}

/** Values that use every optional part of the chart. */
function everything() {
  return [
    "serviceMonitor.enabled=true",
    "serviceMonitor.labels.release=prometheus",
    "serviceAccount.create=false",
    "podDisruptionBudget.enabled=false",
    "podAnnotations.a=b",
    "podLabels.a=b",
    "nodeSelector.a=b",
    "imagePullSecrets[0].name=registry",
    "priorityClassName=high",
    "service.annotations.a=b",
  ].join(",");
}

/** The unit with a program that exists on this machine, because systemd-analyze looks for the program. */
function unit() {
  const text = readFileSync(join(root, "deploy/systemd/holdfast.service"), "utf8");
  const file = join(scratch, "holdfast.service");
  writeFileSync(file, text.replace("/usr/bin/node", process.execPath));
  return file;
}

/** The Compose file beside an env file, which `config` reads. */
function composeFile() {
  mkdirSync(join(scratch, "secrets"));
  writeFileSync(join(scratch, "secrets", "holdfast.env"), "");
  copyFileSync(join(root, "deploy/compose/compose.yaml"), join(scratch, "compose.yaml"));
  return join(scratch, "compose.yaml");
}
