import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { HoldfastSettings } from "../workers/node/holdfast-settings.ts";
import type { WorkerCommand } from "./worker-process.ts";

// The workers of the other languages are built into a cache folder outside git. This program runs from `dist`, and their sources do not.

const sources = fileURLToPath(new URL("../../../interop/workers", import.meta.url));
const nodeWorkers = fileURLToPath(new URL("../workers/node", import.meta.url));
const installWithinMs = 900_000;
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
const debianPackages = ["php-cli", "php-nrk-predis", "php-illuminate-cache", "php-symfony-lock"];

export type ToolchainName = "npm" | "python" | "java" | "go" | "rust" | "php";

interface Toolchain {
  /** The programs that must be installed before. */
  readonly programs: readonly string[];
  /** Builds the worker in its folder of the cache. */
  build(folder: string, log: Log): void;
  command(cache: string, library: string, port: number): WorkerCommand;
}

type Log = (line: string) => void;

export function holdfastCommand(port: number, settings: HoldfastSettings): WorkerCommand {
  const args = [join(nodeWorkers, "holdfast.js"), String(port), JSON.stringify(settings)];
  return { program: process.execPath, args };
}

export const toolchains: Readonly<Record<ToolchainName, Toolchain>> = {
  npm: {
    programs: [],
    build: () => undefined,
    command: (_cache, library, port) => ({
      program: process.execPath,
      args: [join(nodeWorkers, "npm.js"), library, String(port)],
    }),
  },
  python: {
    programs: ["python3"],
    build: (folder, log) => {
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"];
      const requirements = join(sources, "python", "requirements.txt");
      execute(log, "python3", [...pip, "--target", folder, "-r", requirements]);
    },
    command: (cache, library, port) => ({
      program: "python3",
      args: [join(sources, "python", "worker.py"), library, String(port)],
      env: { PYTHONPATH: join(cache, "python") },
    }),
  },
  java: {
    programs: ["mvn", "javac", "java"],
    build: (folder, log) => {
      const [pom, libraries, classes] = [
        join(sources, "java", "pom.xml"),
        join(folder, "lib"),
        join(folder, "classes"),
      ];
      execute(log, "mvn", ["-q", "-B", "-f", pom, copyDependencies, `-DoutputDirectory=${libraries}`]);
      const folderOfSources = join(sources, "java", "src", "interop");
      const files = readdirSync(folderOfSources).map((file) => join(folderOfSources, file));
      execute(log, "javac", ["-nowarn", "-d", classes, "-cp", join(libraries, "*"), ...files]);
    },
    command: (cache, library, port) => {
      const classPath = [join(cache, "java", "lib", "*"), join(cache, "java", "classes")].join(":");
      const small = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
      return {
        program: "java",
        args: [...small, "-cp", classPath, "interop.Worker", library, String(port)],
      };
    },
  },
  go: {
    programs: ["go"],
    build: (folder, log) => {
      execute(log, "go", ["build", "-C", join(sources, "go"), "-o", join(folder, "worker"), "."]);
    },
    command: (cache, library, port) => ({
      program: join(cache, "go", "worker"),
      args: [library, String(port)],
    }),
  },
  rust: {
    programs: ["cargo"],
    build: (folder, log) => {
      const manifest = join(sources, "rust", "Cargo.toml");
      execute(log, "cargo", ["build", "--release", "--manifest-path", manifest, "--target-dir", folder]);
    },
    command: (cache, library, port) => ({
      program: join(cache, "rust", "release", "interop-worker"),
      args: [library, String(port)],
    }),
  },
  php: {
    programs: ["apt-get"],
    build: (_folder, log) => {
      if (!["Predis", "Illuminate/Cache", "Symfony/Component/Lock"].every(isPhpLibrary)) {
        execute(log, "apt-get", ["update", "-qq"]);
        execute(log, "apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...debianPackages]);
      }
    },
    command: (_cache, library, port) => ({
      program: "php",
      args: [join(sources, "php", "worker.php"), library, String(port)],
    }),
  },
};

function isPhpLibrary(name: string): boolean {
  return existsSync(join("/usr/share/php", name, "autoload.php"));
}

/** Builds the worker of a language, unless the cache has the present one. @throws the reason for which it cannot be built */
export function prepare(name: ToolchainName, cache: string, log: Log): void {
  if (name === "npm") {
    return;
  }
  const { programs, build } = toolchains[name];
  const absent = programs.find((program) => spawnSync("which", [program]).status !== 0);
  if (absent !== undefined) {
    throw new Error(`${absent} is not installed`);
  }
  const folder = join(cache, name);
  const stamp = join(folder, "sources.sha256");
  const present = hashOf(join(sources, name));
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === present) {
    return;
  }
  mkdirSync(folder, { recursive: true });
  build(folder, log);
  writeFileSync(stamp, present);
}

function hashOf(folder: string): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    if (/\.\w+$/.test(name)) {
      hash.update(name).update(readFileSync(join(folder, name)));
    }
  }
  return hash.digest("hex");
}

function execute(log: Log, program: string, args: readonly string[]): void {
  log(`running ${[program, ...args.slice(0, 4)].join(" ")} …`);
  const { status, error } = spawnSync(program, [...args], {
    stdio: ["ignore", 2, 2],
    timeout: installWithinMs,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  if (status !== 0) {
    throw new Error(`${program} failed (${error?.message ?? `code ${status}`}); its output is above`);
  }
}
