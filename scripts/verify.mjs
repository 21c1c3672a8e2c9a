// npm run verify: the evidence that needs minutes to hours, part by part. Each part adds a line to verify/records/verify.jsonl.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { append, circumstances, cpuSeconds, root } from "./record.mjs";

/** The engines of chaos, and for how many minutes each. */
const chaosMinutes = {
  redis: 6,
  redlock: 6,
  sentinel: 2,
  cluster: 2,
  postgres: 2,
  mysql: 2,
  etcd: 2,
  "etcd-cluster": 2,
  zookeeper: 2,
  "zookeeper-ensemble": 2,
};

/** A failover may lose a grant there, so the history of a run need not have an order. */
const mayLoseGrants = new Set(["sentinel", "cluster"]);

/**
 * Each part: its purpose, its limit in minutes, and its steps. A step is a command with the function that counts its results.
 * A part fails if one step does.
 */
const parts = {
  model: {
    about: "every state of the quorum's protocol within bounds, and protocols with one broken rule",
    limit: 20,
    steps: () => [
      step("model", [], (out) => ({ explorations: number(/violated in (\d+) explorations/, out) })),
      step("model", ["--mutants"], (out) => ({
        mutants: /(\d+) of \d+ mutants are detected/.exec(out)?.[0],
      })),
      vitest("verify", "verify/test/model/"),
    ],
  },
  sim: {
    about: "20 000 schedules, schedules with tight bounds, and the kept schedules on their mutants",
    limit: 45,
    steps: ({ seed }) => [
      step("sim", ["--runs", "20000", "--seed", String(seed), "--json"], ofSimulation),
      vitest("verify", "verify/test/sim/"),
    ],
  },
  properties: {
    about: "random cases in their full number: the fake Redis beside a real one, and traces beside the model",
    limit: 15,
    steps: () => [vitest("unit", "verify/test/trace/", "property"), vitest("servers", "property")],
  },
  chaos: {
    about: "faults on real servers and processes, on each engine",
    limit: 60,
    steps: ({ seed, folder }) => [
      ...Object.entries(chaosMinutes).flatMap(([engine, minutes]) => {
        const settings = [
          "--engine",
          engine,
          "--minutes",
          minutes,
          "--seed",
          seed % 2 ** 31,
          "--folder",
          folder,
        ];
        const run = step("chaos", settings.map(String), () => ofChaos(join(folder, engine, "verdict.json")));
        return mayLoseGrants.has(engine) ? [run] : [run, porcupine(join(folder, engine))];
      }),
      vitest("verify", "verify/test/chaos/"),
    ],
  },
  mutants: {
    about: "every mutant of the catalogue by its killers",
    limit: 120,
    steps: () => [
      step("mutants", [], (out) => ({ mutants: /\d+ mutants: .*/.exec(out)?.[0] })),
      vitest("verify", "verify/test/mutants/"),
    ],
  },
  runtimes: {
    about:
      "the packed package with each runtime, client library, server and compiler; replicas on each server",
    limit: 50,
    steps: () => [step("runtimes", ["--json"], ofRuntimes)],
  },
  interop: {
    about: "locks that are shared with other libraries, in six languages",
    limit: 60,
    steps: () => [step("interop", ["--json", "--seconds", "10"], ofInterop)],
  },
  compare: {
    about: "known failures of lock libraries",
    limit: 20,
    steps: () => [step("compare", ["--json"], ofCompare), vitest("verify", "verify/test/compare/")],
  },
  galera: {
    about: "MariaDB Galera, with clients at two nodes",
    limit: 5,
    steps: () => [vitest("verify", "galera")],
  },
  installs: {
    about: "three versions of the NestJS framework, installed and run",
    limit: 5,
    steps: () => [vitest("verify", "packages/nestjs/")],
  },
  load: {
    about: "thousands of leases, a failover under load, and objects that outlive their use",
    limit: 10,
    steps: () => [vitest("verify", "many-leases", "sentinel/load", "retained-objects")],
  },
  bench: {
    about: "each suite of the benchmarks in its quick form, and the profile of an acquire",
    limit: 10,
    steps: () => [vitest("verify", "bench/")],
  },
};

const usage = `Usage: npm run verify -- [options]

Runs the parts one after another. Each adds a line to verify/records/verify.jsonl. Exit code 1: a part failed.

  --only A,B   only these parts
  --seed N     the seed of the schedules and of chaos (default: the date, as YYMMDD)
  --no-record  records nothing
  --help       this text

Parts, with the limit of each in minutes:
${Object.entries(parts)
  .map(([name, { about, limit }]) => `  ${name.padEnd(10)} ${String(limit).padStart(4)}  ${about}`)
  .join("\n")}
`;

function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: "string" },
      seed: { type: "string", default: new Date().toISOString().slice(2, 10).replaceAll("-", "") },
      "no-record": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const names = values.only?.split(",").map((name) => name.trim()) ?? Object.keys(parts);
  const unknown = names.find((name) => !(name in parts));
  if (unknown !== undefined) {
    throw new TypeError(`Expected --only to be some of ${Object.keys(parts).join(", ")}, got "${unknown}"`);
  }
  const seed = Number(values.seed);
  if (!/^\d+$/.test(values.seed) || seed > 2 ** 27) {
    throw new TypeError(`Expected --seed to be an integer from 0 to ${2 ** 27}, got "${values.seed}"`);
  }
  return { names, seed, isRecorded: !values["no-record"], help: values.help };
}

async function main({ names, seed, isRecorded }) {
  const failed = [];
  for (const [index, name] of names.entries()) {
    process.stderr.write(
      `\nverify: ${name} (${index + 1} of ${names.length}, at most ${parts[name].limit} minutes)\n`,
    );
    const record = await runPart(name, seed);
    if (record.failed.length > 0) failed.push(name);
    if (isRecorded) append("verify.jsonl", record);
    process.stdout.write(
      `${name}: ${record.failed.length === 0 ? "passed" : `FAILED: ${record.failed.join("; ")}`}\n`,
    );
  }
  const passed = names.length - failed.length;
  process.stdout.write(`${passed} passed, ${failed.length} failed\n`);
  return failed.length === 0;
}

/** Runs the steps of a part, also after one that failed. @returns the record of the part */
async function runPart(name, seed) {
  const { limit, steps } = parts[name];
  const folder = mkdtempSync(join(tmpdir(), "holdfast-verify-"));
  const before = { wall: performance.now(), cpu: cpuSeconds() ?? 0, ...circumstances() };
  const end = before.wall + limit * 60_000;
  const results = [];
  const failed = [];
  for (const { command, count } of steps({ seed, folder })) {
    const { code, out } = await run(command, end - performance.now());
    const text = command.join(" ").replace(folder, "<folder>");
    let counts;
    try {
      counts = count(out);
    } catch (error) {
      counts = { error: `no result: ${error.message}` };
    }
    results.push({ command: text, code, ...counts });
    if (code !== 0 || "error" in counts)
      failed.push(`${text} (${code === null ? "limit of time" : `exit code ${code}`})`);
  }
  rmSync(folder, { recursive: true, force: true });
  const { wall, cpu, ...about } = before;
  return {
    part: name,
    ...about,
    command: `npm run verify -- --only ${name} --seed ${seed}`,
    wallSeconds: seconds(performance.now() / 1_000 - wall / 1_000),
    cpuSeconds: seconds((cpuSeconds() ?? 0) - cpu),
    results,
    failed,
  };
}

/** Runs a command until its end or its limit. Its output goes to stderr, unless it is JSON. @returns its standard output */
function run([program, ...args], limitMs) {
  return new Promise((resolve) => {
    const env = { ...process.env, HOLDFAST_THOROUGH: "true" };
    // A group of its own, so that the servers of a step end with the step at the limit of time.
    const child = spawn(program, args, {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    const signalled = (signal) => {
      try {
        process.kill(-Number(child.pid), signal);
      } catch {
        // the group has ended
      }
    };
    let out = "";
    let isLate = false;
    child.stdout.setEncoding("utf8").on("data", (text) => {
      out += text;
      if (!text.startsWith("{") && !text.startsWith("[")) process.stderr.write(text);
    });
    const timer = setTimeout(
      () => {
        isLate = true;
        signalled("SIGTERM");
        setTimeout(() => signalled("SIGKILL"), 10_000).unref();
      },
      Math.max(0, limitMs),
    );
    const stop = (signal) => {
      signalled(signal);
      process.exitCode = 130;
    };
    process.once("SIGINT", stop).once("SIGTERM", stop);
    child.on("close", (code) => {
      clearTimeout(timer);
      process.off("SIGINT", stop).off("SIGTERM", stop);
      resolve({ code: isLate ? null : code, out });
    });
  });
}

/** A program of verify/. */
function step(program, args, count) {
  return { command: ["node", `verify/dist/${program}/main.js`, ...args], count };
}

/** Porcupine, a checker of linearizability of others, on the history of a run. It needs Go. */
function porcupine(folder) {
  return {
    command: ["node", "verify/dist/chaos/check.js", folder, "--porcupine"],
    count: (out) => ({ operations: number(/^(\d+) operations of \d+ keys are linearizable/m, out) }),
  };
}

/** Test files of a project of vitest.config.ts whose paths contain one of the texts. */
function vitest(project, ...texts) {
  return {
    command: ["node", "node_modules/vitest/vitest.mjs", "run", "--project", project, ...texts],
    count: (out) => ({ tests: /\d+ passed, \d+ failed.*\s*$/.exec(out)?.[0].trim() }),
  };
}

function ofSimulation(out) {
  const { runs, firstSeed, grants, operations, failures } = JSON.parse(out);
  return { runs, firstSeed, grants, operations, failures };
}

function ofChaos(path) {
  const { violations, figures } = JSON.parse(readFileSync(path, "utf8"));
  const { seconds: duration, faults, grants, losses, failovers, conflictsAcrossFailovers } = figures;
  return {
    seconds: duration,
    faults,
    grants,
    losses,
    ...(failovers.length > 0 && { failovers: failovers.length, conflictsAcrossFailovers }),
    violations: violations.length,
  };
}

function ofRuntimes(out) {
  const { programs, types, suites, notRun } = JSON.parse(out);
  return {
    programs: tally(programs.map(({ outcome }) => outcome.state)),
    types: tally(types.map(({ outcome }) => outcome.state)),
    replicas: tally(suites.map(({ outcome }) => outcome.state)),
    notRun,
  };
}

function ofInterop(out) {
  const results = JSON.parse(out);
  return { libraries: results.length, overlaps: sum(results.map(({ violations }) => violations.length)) };
}

function ofCompare(out) {
  const results = JSON.parse(out);
  const names = [...new Set(results.map(({ library }) => library))];
  const verdictsOf = (name) =>
    results.filter(({ library }) => library === name).map(({ outcome }) => outcome.verdict);
  return Object.fromEntries(names.map((name) => [name, tally(verdictsOf(name))]));
}

/** How often each text occurs. */
function tally(texts) {
  const counts = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}

function number(pattern, text) {
  return Number(pattern.exec(text)?.[1]);
}

function seconds(value) {
  return Math.round(value);
}

let options;
try {
  options = parseOptions(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`verify: ${error.message}\n`);
  process.exit(2);
}
if (options.help) process.stdout.write(usage);
else if (!(await main(options))) process.exitCode ||= 1;
