// Servers of newer releases of Debian, unpacked into the cache folder of the user. Nothing is installed into the system: each server runs
// with the C library of its own release. scripts/setup.mjs runs before node_modules exists, so this file uses only Node's built-ins.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const cacheFolder = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "holdfast-runtimes",
);

export const debianServers = {
  redis8: { title: "Redis 8", suite: "trixie", package: "redis-server" },
  valkey8: { title: "Valkey 8", suite: "trixie", package: "valkey-server" },
  valkey9: { title: "Valkey 9", suite: "forky", package: "valkey-server" },
};

/** A mirror that does not reply must not hold up the tests. */
const commandTimeoutMs = 120_000;
const patience = { "Acquire::http::Timeout": "15", "Acquire::https::Timeout": "15", "Acquire::Retries": "0" };

export function debianProgram(name) {
  return join(cacheFolder, name, "start");
}

export function provideDebianServer(name) {
  const folder = join(cacheFolder, name);
  if (!existsSync(folder)) {
    process.stderr.write(`installing ${name}\n`);
    const incomplete = `${folder}.${process.pid}`;
    try {
      unpack(debianServers[name], incomplete);
      renameSync(incomplete, folder);
    } finally {
      rmSync(incomplete, { recursive: true, force: true });
    }
  }
  writeStarter(folder, debianServers[name].package);
  return debianProgram(name);
}

/** Downloads a package with all that it needs, down to the C library, and unpacks it without installing it. */
function unpack({ suite, package: name }, folder) {
  for (const path of ["lists/partial", "archives/partial", "root"]) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  writeFileSync(join(folder, "sources.list"), `deb ${mirror(folder)} ${suite} main\n`);
  writeFileSync(join(folder, "status"), "");
  const settings = {
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::State": folder,
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": folder,
    "APT::Install-Recommends": "0",
    "APT::Sandbox::User": "",
    ...patience,
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  run("apt-get", [...options, "update"], folder);
  run("apt-get", [...options, "install", "--yes", "--quiet", "--download-only", name], folder);
  for (const file of readdirSync(join(folder, "archives"))) {
    if (file.endsWith(".deb")) run("dpkg-deb", ["-x", join("archives", file), "root"], folder);
  }
}

/** The mirror of Debian that this machine uses. */
function mirror(folder) {
  const targets = ["--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian"];
  const [address = ""] = run("apt-get", ["indextargets", ...targets], folder).split("\n");
  if (address === "") throw new Error("apt-get knows no mirror of Debian");
  return address;
}

/** The program needs a newer C library than this machine may have, so its own loader starts it. */
function writeStarter(folder, name) {
  const root = join(folder, "root");
  const loaders = ["lib64", "usr/lib64", "lib", "usr/lib"].flatMap((path) => {
    const inside = join(root, path);
    const files = existsSync(inside) ? readdirSync(inside) : [];
    return files.filter((file) => /^ld-linux.*[.]so/.test(file)).map((file) => join(inside, file));
  });
  const libraries = readdirSync(join(root, "usr", "lib")).filter((file) => file.endsWith("-linux-gnu"));
  const path = libraries
    .flatMap((file) => [join(root, "usr", "lib", file), join(root, "lib", file)])
    .join(":");
  const command = `"${loaders[0]}" --library-path "${path}" "${join(root, "usr", "bin", name)}"`;
  writeFileSync(join(folder, "start"), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
}

function run(command, args, folder) {
  const options = { cwd: folder, encoding: "utf8", timeout: commandTimeoutMs, killSignal: "SIGKILL" };
  const { status, error, stdout, stderr } = spawnSync(command, args, options);
  if (error !== undefined) throw error;
  if (status !== 0) {
    const output = `${stdout}\n${stderr}`.trim().split("\n").slice(-5).join("\n");
    throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  }
  return stdout;
}
