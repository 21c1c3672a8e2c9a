// Prepares a fresh clone: checks the Node version, and installs the packages of the lock file and `redis-server` for the tests.
// Scripts with the prefix `pre` run before node_modules exists, so this file may use only Node's built-ins.
//
// If redis-server cannot be installed, `node scripts/setup.mjs` fails with CI=true and otherwise prints a prominent warning.
// With `--optional-redis` the warning is one line. With `--no-redis` the script does not look for redis-server.

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const oldestNode = [20, 19];
const installTimeoutMs = 300_000;

const redisInstallers = [
  {
    manager: "apt-get",
    needsRoot: true,
    install: ["install", "-y", "--no-install-recommends", "redis-server"],
    refresh: ["update"],
  },
  { manager: "apk", needsRoot: true, install: ["add", "--no-cache", "redis"] },
  { manager: "dnf", needsRoot: true, install: ["install", "-y", "redis"] },
  { manager: "brew", needsRoot: false, install: ["install", "redis"] },
];

requireNode();
installPackages();
if (!process.argv.includes("--no-redis")) provideRedis(process.argv.includes("--optional-redis"));

function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return;
  fail(`Holdfast needs Node ${oldestNode.join(".")} or newer; this is ${process.versions.node}.`);
}

function installPackages() {
  if (packagesAreFresh()) return;
  logLine("installing the packages of package-lock.json (npm ci)");
  // npm provides its own path, so that Windows needs no shell.
  const npm = process.env["npm_execpath"];
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund"];
  const status = npm?.endsWith(".js") ? run(process.execPath, [npm, ...args]) : run("npm", args);
  if (status !== 0) fail("npm ci did not succeed; its output is above.");
}

/**
 * npm lists the installed packages in node_modules/.package-lock.json. The contents are compared, not the times, because a git
 * checkout touches the lock file without a change. Optional packages of other platforms may be absent.
 */
function packagesAreFresh() {
  const wanted = readLock(join(root, "package-lock.json"));
  const installed = readLock(join(root, "node_modules", ".package-lock.json"));
  if (!wanted || !installed) return false;
  const isInstalled = ([path, entry]) => {
    const found = installed[path];
    if (!found) return Boolean(entry.optional || entry.devOptional || entry.peer);
    return found.version === entry.version && found.integrity === entry.integrity;
  };
  const stillWanted = (path) => path in wanted;
  return (
    Object.entries(wanted)
      .filter(([path]) => path !== "")
      .every(isInstalled) && Object.keys(installed).every(stillWanted)
  );
}

function readLock(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return undefined; // an incomplete file, which npm ci writes again
  }
}

function provideRedis(optional) {
  if (isOnPath("redis-server")) return;
  const installer = redisInstallers.find(({ manager }) => isOnPath(manager));
  if (installer && installRedis(installer)) return;

  const command = installer ? `${installer.manager} ${installer.install.join(" ")}` : "your package manager";
  const advice = `redis-server is not on the PATH; install it with: ${command}`;
  if (optional) return logLine(advice);
  if (process.env["CI"] === "true") fail(advice);
  logLine(
    `${"!".repeat(72)}\n${advice}\nEvery test that needs a real server will be SKIPPED.\n${"!".repeat(72)}`,
  );
}

function installRedis({ manager, needsRoot, install, refresh }) {
  const prefix = needsRoot ? rootPrefix() : [];
  if (!prefix) return false;
  const call = (args) => {
    const [command, ...rest] = [...prefix, manager, ...args];
    logLine(`running ${[command, ...rest].join(" ")}`);
    return run(command, rest, { DEBIAN_FRONTEND: "noninteractive" }) === 0;
  };
  // The package lists of a fresh container are empty, so the first attempt may fail for that reason only.
  const installed = call(install) || (refresh !== undefined && call(refresh) && call(install));
  return installed && isOnPath("redis-server");
}

/** The prefix of a command that needs root, or undefined if this user may not run the command. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const mayUseSudo = isOnPath("sudo") && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0;
  return mayUseSudo ? ["sudo", "-n"] : undefined;
}

function isOnPath(program) {
  const names = process.platform === "win32" ? [`${program}.exe`, `${program}.cmd`] : [program];
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return folders.some((folder) => names.some((name) => isExecutable(join(folder, name))));
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function run(command, args, extraEnv = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    // The output of the tools goes to stderr, so that the last line of stdout is that of the tests.
    stdio: ["ignore", 2, 2],
    env: { ...process.env, ...extraEnv },
    shell: process.platform === "win32" && command === "npm",
    timeout: installTimeoutMs,
  });
  return result.status ?? 1;
}

function logLine(line) {
  console.error(`setup: ${line}`);
}

function fail(line) {
  logLine(line);
  process.exit(1);
}
