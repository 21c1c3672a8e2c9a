import { fileURLToPath } from "node:url";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../run/client.ts";
import { HttpServer } from "../run/http-server.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { portsOf, type Figures, type Metric, type Site, type Suite } from "./suite.ts";
import { timingText, type Timing } from "../measure/window.ts";

const connections = 64;
const label = `${connections} at once`;
const program = fileURLToPath(new URL("../../../packages/server/dist/main.js", import.meta.url));

/** Replies immediately, with as many bytes as the service. */
const bareServer = `
  const text = JSON.stringify({ leaseId: "x".repeat(150), more: "x".repeat(300) });
  const server = require("node:http").createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(text));
  });
  server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
  process.on("SIGTERM", () => process.exit(0));
`;

const metrics: readonly Metric[] = [
  { id: "rate", label: "pairs/s", digits: 0, best: "most" },
  { id: "cpu", label: "CPU µs/pair", digits: 0 },
];

/** One `tryAcquire` and one release. */
type Pair = (key: string) => Promise<void>;

interface Trial {
  readonly settings: string;
  readonly rate: number;
  readonly cpu: number;
}

/**
 * Compares `tryAcquire` and release over HTTP with the same calls of the library, and with requests to a server that does no work.
 * The library sends the concurrent calls to Redis together, but HTTP requests arrive one by one.
 */
export function service(contestants: readonly ContestantName[], timing: Timing, rounds: number): Suite {
  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    const { settings, rate, cpu } = await trial(contestant, site);
    yield { case: label, settings, values: { rate, cpu }, failures: 0, firstFailure: null };
  }

  async function trial(contestant: ContestantName, site: Site): Promise<Trial> {
    const [port] = portsOf(site);
    if (contestant === "holdfast") return byLibrary(port);
    if (contestant === "bare-http")
      return byService(["-e", bareServer], {}, "replies without doing any work");
    const env = { HOLDFAST_URL: `redis://127.0.0.1:${port}`, HOLDFAST_PORT: "0" };
    return byService(
      [program],
      env,
      "the lock service in its own process, its clients in the process of the benchmark",
    );
  }

  async function byLibrary(port: number): Promise<Trial> {
    const client = connect(port);
    const locks = createLocks(redis(client), { handover: false });
    const pair: Pair = async (key) => {
      const lease = await locks.tryAcquire(key, { renew: false });
      await lease?.release();
    };
    const cpuMicros = (): number => {
      const { user, system } = process.cpuUsage();
      return user + system;
    };
    const measured = await measurePairs(pair, cpuMicros, timing);
    await locks.close();
    client.disconnect();
    return {
      settings: "handover: false, renew: false. The CPU time is that of the process with the library",
      ...measured,
    };
  }

  async function byService(args: string[], env: NodeJS.ProcessEnv, settings: string): Promise<Trial> {
    await using server = await HttpServer.start(args, { env, connections });
    const pair: Pair = async (key) => {
      const lease = await server.send("POST", "/v1/leases", JSON.stringify({ key }));
      const { leaseId } = JSON.parse(lease) as { leaseId: string };
      await server.send("DELETE", `/v1/leases/${leaseId}`);
    };
    return { settings, ...(await measurePairs(pair, () => server.cpuMicros, timing)) };
  }

  return {
    name: "service",
    title: "The lock service",
    method: `Try and release, ${connections} at once, each with its own key. Over HTTP, a pair takes two requests. ${timingText(timing)}.`,
    contestants,
    absent: [],
    reference: "holdfast",
    topology: "server",
    rounds,
    cases: [label],
    metrics,
    panels: [
      { form: "bars", metric: "rate" },
      { form: "bars", metric: "cpu" },
    ],
    measure,
  };
}

/** Measures pairs per second after a warm-up, because a service has compiled its code only after thousands of requests. */
async function measurePairs(
  pair: Pair,
  cpuMicros: () => number,
  { warmUpMs, measureMs }: Timing,
): Promise<{ rate: number; cpu: number }> {
  await pairsUntil(pair, performance.now() + warmUpMs);
  const baseline = cpuMicros();
  const begin = performance.now();
  const pairs = await pairsUntil(pair, begin + measureMs);
  const elapsedMs = performance.now() - begin;
  return { rate: (pairs / elapsedMs) * 1_000, cpu: (cpuMicros() - baseline) / pairs };
}

async function pairsUntil(pair: Pair, end: number): Promise<number> {
  let pairs = 0;
  const repeat = async (key: string): Promise<void> => {
    while (performance.now() < end) {
      await pair(key);
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, index) => repeat(`service:${index}`)));
  return pairs;
}
