// Makes a fresh clone ready: the Node version, the packages of the lock file, and `redis-server` for the tests.
// npm runs `pre` scripts before node_modules exists, so this file may use nothing but Node's built-ins.
//
//   node scripts/setup.mjs                    a missing redis-server is an error when CI=true, else a loud warning
//   node scripts/setup.mjs --optional-redis   a missing redis-server is worth one line
//   node scripts/setup.mjs --no-redis         redis-server is not looked for

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
  // npm passes its own path on, which spares a shell on Windows.
  const npm = process.env["npm_execpath"];
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund"];
  const status = npm?.endsWith(".js") ? run(process.execPath, [npm, ...args]) : run("npm", args);
  if (status !== 0) fail("npm ci did not succeed; its output is above.");
}

/**
 * npm notes in node_modules/.package-lock.json what it installed. We compare contents, not times: a git checkout
 * touches the lock file without changing it. Optional packages of other platforms are rightly absent.
 */
function packagesAreFresh() {
  const wanted = readLock(join(root, "package-lock.json"));
  const installed = readLock(join(root, "node_modules", ".package-lock.json"));
  if (!wanted || !installed) return false;
  const sameAsWanted = ([path, entry]) => {
    const found = installed[path];
    if (!found) return Boolean(entry.optional || entry.devOptional || entry.peer);
    return found.version === entry.version && found.integrity === entry.integrity;
  };
  const stillWanted = (path) => path in wanted;
  return (
    Object.entries(wanted)
      .filter(([path]) => path !== "")
      .every(sameAsWanted) && Object.keys(installed).every(stillWanted)
  );
}

function readLock(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return undefined; // a half-written file: npm ci writes it anew
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
  // Package lists of a fresh container are empty, so a first failure may only mean that.
  const installed = call(install) || (refresh !== undefined && call(refresh) && call(install));
  return installed && isOnPath("redis-server");
}

/** What to put before a command that needs root, or undefined when we may not run it. */
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
    // What the tools say goes to stderr, so that the last line of stdout stays the tests' own.
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
