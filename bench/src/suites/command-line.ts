import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ContestantName } from "../run/contestant-list.ts";
import { median } from "../measure/statistics.ts";
import { portsOf, type Figures, type Metric, type Site, type Suite } from "./suite.ts";

const metrics: readonly Metric[] = [
  { id: "over", label: "over bare node p50 ms", digits: 0 },
  { id: "total", label: "total p50 ms", digits: 0 },
  { id: "node", label: "bare node p50 ms", digits: 0 },
  { id: "trip", label: "round trip p50 ms", digits: 2 },
];

const startCase = "from call to the command's start";
const refusalCase = "held, --wait 0: from call to exit 75";

const call = promisify(execFile);
const folder = dirname(fileURLToPath(import.meta.resolve("@holdfast/cli/package.json")));
const program = join(folder, "dist", "bundle", "main.cjs");

/**
 * The time that `holdfast run` adds to the start of a command. Most of that time is the start of Node, which is measured separately
 * and subtracted.
 */
export function commandLine(
  contestants: readonly ContestantName[],
  repetitions: number,
  rounds: number,
): Suite {
  async function* measure(_: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    const [port] = portsOf(site);
    const [{ admin }] = site.servers;
    const env = { ...process.env, HOLDFAST_URL: `redis://127.0.0.1:${port}` };
    const trip = await medianOf(repetitions, async () => since(async () => admin.ping()));
    yield await compared(startCase, trip, () => startOf(env));
    await admin.set("lock:command-line", "somebody else");
    yield await compared(refusalCase, trip, () => refusalOf(env));
  }

  /** Alternates between the two programs, so that other load on the machine affects both equally. */
  async function compared(label: string, trip: number, one: () => Promise<number>): Promise<Figures> {
    const totals: number[] = [];
    const bare: number[] = [];
    for (let index = 0; index < repetitions; index += 1) {
      totals.push(await one());
      bare.push(await since(() => call(process.execPath, ["-e", "0"])));
    }
    const [total, node] = [median(totals), median(bare)];
    const values = { over: total - node - trip, total, node, trip };
    return { case: label, settings: "holdfast run, ioredis 6", values, failures: 0, firstFailure: null };
  }

  return {
    name: "command-line",
    title: "Start of a command by `holdfast run`",
    method: `${repetitions} calls, each next to a bare \`node -e 0\`. The medians of the bare calls and of a round trip are subtracted.`,
    contestants,
    absent: [],
    reference: null,
    topology: "server",
    rounds,
    cases: [startCase, refusalCase],
    metrics,
    panels: [
      { form: "bars", metric: "over" },
      { form: "bars", metric: "total" },
      { form: "bars", metric: "node" },
    ],
    measure,
  };
}

/** The time from the call to the start of the command, which prints the current time. */
async function startOf(env: NodeJS.ProcessEnv): Promise<number> {
  const called = Date.now();
  const args = ["run", "--key", "command-line:start", "--", "date", "+%s%N"];
  const { stdout } = await call(process.execPath, [program, ...args], { env });
  return Number(BigInt(stdout.trim()) / 1_000n) / 1_000 - called;
}

async function refusalOf(env: NodeJS.ProcessEnv): Promise<number> {
  const args = ["run", "--key", "command-line", "--wait", "0", "--", "true"];
  return since(async () => {
    const { code } = await call(process.execPath, [program, ...args], { env }).then(
      () => ({ code: 0 }),
      (error: { code?: number }) => error,
    );
    if (code !== 75) throw new Error(`Expected holdfast run to end with 75, got ${code}`);
  });
}

async function since(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function medianOf(count: number, one: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let index = 0; index < count; index += 1) values.push(await one());
  return median(values);
}
