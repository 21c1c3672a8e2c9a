// Prepares a fresh clone: checks the Node version, and installs the packages of the lock file. It also installs the servers of the tests:
// Redis, PostgreSQL, PgBouncer, MariaDB, etcd, ZooKeeper, Chromium, and moto for S3. The benchmark of ZooKeeper needs kazoo.
// Redis 8 and Valkey 8 are unpacked beside the Redis of the machine, into the cache folder of the user.
// Scripts with the prefix `pre` run before node_modules exists, so this file may use only Node's built-ins.
//
// If a server cannot be installed, `node scripts/setup.mjs` fails with CI=true and otherwise prints a prominent warning.
// With `--optional-redis` the script looks for Redis only, and the warning is one line. With `--no-redis` it looks for no server.

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { debianServers, provideDebianServer } from "../test-kit/debian-servers.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const oldestNode = [20, 19];
const installTimeoutMs = 300_000;

const managers = [
  {
    manager: "apt-get",
    needsRoot: true,
    install: ["install", "-y", "--no-install-recommends"],
    refresh: ["update"],
  },
  { manager: "apk", needsRoot: true, install: ["add", "--no-cache"] },
  { manager: "dnf", needsRoot: true, install: ["install", "-y"] },
  { manager: "brew", needsRoot: false, install: ["install"] },
];

/** The servers of the tests: the name of the package by manager, and the program or file. Debian has some outside the PATH. */
const redis = {
  program: "redis-server",
  packages: { "apt-get": "redis-server", apk: "redis", dnf: "redis", brew: "redis" },
};
const otherServers = [
  {
    program: "postgres",
    elsewhere: ["17", "16", "15", "14"].map((version) => `/usr/lib/postgresql/${version}/bin/postgres`),
    packages: { "apt-get": "postgresql", apk: "postgresql", dnf: "postgresql-server", brew: "postgresql" },
  },
  {
    program: "mariadbd",
    elsewhere: ["/usr/sbin/mariadbd"],
    packages: { "apt-get": "mariadb-server", apk: "mariadb", dnf: "mariadb-server", brew: "mariadb" },
  },
  {
    program: "pgbouncer",
    elsewhere: ["/usr/sbin/pgbouncer"],
    packages: { "apt-get": "pgbouncer", apk: "pgbouncer", dnf: "pgbouncer", brew: "pgbouncer" },
  },
  {
    program: "etcd",
    packages: { "apt-get": "etcd-server", apk: "etcd", dnf: "etcd", brew: "etcd" },
  },
  {
    program: "zkServer.sh",
    elsewhere: ["/usr/share/zookeeper/bin/zkServer.sh"],
    packages: { "apt-get": "zookeeper", apk: "zookeeper", dnf: "zookeeper", brew: "zookeeper" },
  },
  {
    program: "promtool",
    packages: {
      "apt-get": "prometheus",
      apk: "prometheus",
      dnf: "golang-github-prometheus",
      brew: "prometheus",
    },
  },
  {
    program: "chromium",
    packages: { "apt-get": "chromium", apk: "chromium", dnf: "chromium", brew: "chromium" },
  },
];
/** Packages of Python: an S3-compatible server that implements conditional writes, and a client of ZooKeeper for the benchmark. */
const pythonPackages = { moto: "moto[s3,server]==5.2.5", kazoo: "kazoo==2.11.0" };

requireNode();
installPackages();
if (process.argv.includes("--optional-redis")) provide(redis, true);
else if (!process.argv.includes("--no-redis")) {
  for (const server of [redis, ...otherServers]) provide(server, false);
  for (const [name, requirement] of Object.entries(pythonPackages)) providePackage(name, requirement);
  for (const name of ["redis8", "valkey8"]) provideUnpacked(name);
}

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

function provide({ program, elsewhere = [], packages }, optional) {
  const isThere = () => isOnPath(program) || elsewhere.some(isExecutable);
  if (isThere()) return;
  const installer = managers.find(({ manager }) => isOnPath(manager));
  if (installer && install(installer, packages[installer.manager]) && isThere()) return;

  const { manager, install: args } = installer ?? {};
  const command = manager ? `${manager} ${args.join(" ")} ${packages[manager]}` : "your package manager";
  missing(`${program} is not installed; install it with: ${command}`, optional);
}

function install({ manager, needsRoot, install: args, refresh }, name) {
  const prefix = needsRoot ? rootPrefix() : [];
  if (!prefix) return false;
  const call = (args) => {
    const [command, ...rest] = [...prefix, manager, ...args];
    logLine(`running ${[command, ...rest].join(" ")}`);
    return run(command, rest, { DEBIAN_FRONTEND: "noninteractive" }) === 0;
  };
  // The package lists of a fresh container are empty, so the first attempt may fail for that reason only.
  return call([...args, name]) || (refresh !== undefined && call(refresh) && call([...args, name]));
}

/** The folder is complete only after the installation, because pip moves the packages there at its end. */
function providePackage(name, requirement) {
  const folder = join(root, "node_modules", ".cache", name);
  if (existsSync(join(folder, name))) return;
  const args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder];
  logLine(`running python3 ${[...args, requirement].join(" ")}`);
  const isInstalled = isOnPath("python3") && run("python3", [...args, requirement]) === 0;
  if (!isInstalled) missing(`${name} is not installed; it needs python3 with pip`, false);
}

/** A second server of a kind that the machine has. Some machines know no mirror of Debian, so its absence never fails. */
function provideUnpacked(name) {
  try {
    provideDebianServer(name);
  } catch (error) {
    warn(`${debianServers[name].title} was not unpacked: ${error.message}`);
  }
}

function missing(advice, optional) {
  if (optional) return logLine(advice);
  if (process.env["CI"] === "true") fail(advice);
  warn(advice);
}

function warn(advice) {
  logLine(`${"!".repeat(72)}\n${advice}\nEvery test that needs it will be SKIPPED.\n${"!".repeat(72)}`);
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
