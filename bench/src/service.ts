import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import { RedisServer } from "./server.ts";

// Try and release over HTTP against the same by the library itself, on one Redis: 64 at once, each with a key of its own. The service
// runs in a process of its own, its clients in this one. Linux tells what its processor time is. What two requests cost at the least is
// measured by a server that answers without doing anything. The library asks for all 64 in one call to Redis; requests come one by one.
//
//   node bench/dist/service.js [seconds]

const connections = 64;
const rounds = 3;
const warmMs = 10_000;
const seconds = Number(process.argv[2] ?? 5);
/** Answers at once, with as many bytes as the service does. */
const bare = `
  const text = JSON.stringify({ leaseId: "x".repeat(150), more: "x".repeat(300) });
  const server = require("node:http").createServer((asked, answer) => {
    asked.resume().on("end", () => answer.writeHead(200, { "content-type": "application/json" }).end(text));
  });
  server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
  process.on("SIGTERM", () => process.exit(0));
`;
const program = fileURLToPath(new URL("../../packages/server/dist/main.js", import.meta.url));

interface Figures {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

{
  await using server = await RedisServer.start(null);
  const library: Figures[] = [];
  const service: Figures[] = [];
  const floor: Figures[] = [];
  for (let round = 0; round < rounds; round += 1) {
    library.push(await measureLibrary(server.port));
    service.push(
      await measureService([program], {
        HOLDFAST_URL: `redis://127.0.0.1:${server.port}`,
        HOLDFAST_PORT: "0",
      }),
    );
    floor.push(await measureService(["-e", bare], {}));
  }
  const [byLibrary, byService, byNothing] = [median(library), median(service), median(floor)];
  process.stdout.write(
    `try + release, ${connections} at once, ${rounds} rounds of ${seconds} s, Node ${process.version}, medians\n\n` +
      `${row("library", byLibrary, "a pair")}${row("service", byService, "a pair (two requests)")}` +
      `${row("nothing", byNothing, "a pair: requests that a bare server answers")}` +
      `\nservice : library = ${(byService.perSecond / byLibrary.perSecond).toFixed(3)}` +
      `\nservice : nothing = ${(byService.perSecond / byNothing.perSecond).toFixed(2)}\n`,
  );
}

async function measureLibrary(port: number): Promise<Figures> {
  const client = new Redis(port);
  const locks = createLocks(redis(client), { handover: false });
  let before = process.cpuUsage();
  const pair = async (key: string): Promise<void> => {
    const lease = await locks.tryAcquire(key, { renew: false });
    await lease?.release();
  };
  const perSecond = await run(pair, () => {
    before = process.cpuUsage();
  });
  const { user, system } = process.cpuUsage(before);
  await locks.close();
  client.disconnect();
  return { perSecond, cpuMicros: (user + system) / (perSecond * seconds) };
}

async function measureService(args: readonly string[], env: Record<string, string>): Promise<Figures> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const url = /http:\/\/\S+/.exec(String(said))?.[0] ?? "";
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let before = 0;
  const pair = async (key: string): Promise<void> => {
    const lease = await send(agent, url, "POST", "/v1/leases", JSON.stringify({ key }));
    const { leaseId } = JSON.parse(lease) as { leaseId: string };
    await send(agent, url, "DELETE", `/v1/leases/${leaseId}`);
  };
  const perSecond = await run(pair, () => {
    before = cpuMicrosOf(child);
  });
  const cpuMicros = (cpuMicrosOf(child) - before) / (perSecond * seconds);
  agent.destroy();
  child.kill("SIGTERM");
  await once(child, "exit");
  return { perSecond, cpuMicros };
}

/** How many pairs a second there are, once all code is compiled: of a service that takes thousands of requests. */
async function run(pair: (key: string) => Promise<void>, warmed: () => void): Promise<number> {
  const warmEnd = performance.now() + warmMs;
  await Promise.all(Array.from({ length: connections }, (_, i) => repeat(pair, `bench:${i}`, warmEnd)));
  warmed();
  const begin = performance.now();
  const end = begin + seconds * 1_000;
  const counts = await Promise.all(
    Array.from({ length: connections }, (_, i) => repeat(pair, `bench:${i}`, end)),
  );
  return counts.reduce((sum, count) => sum + count, 0) / seconds;
}

async function repeat(pair: (key: string) => Promise<void>, key: string, end: number): Promise<number> {
  let count = 0;
  while (performance.now() < end) {
    await pair(key);
    count += 1;
  }
  return count;
}

function send(agent: Agent, url: string, method: string, path: string, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { "content-type": "application/json", "content-length": body.length };
    const asked = request(new URL(path, url), { agent, method, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => {
        if ((answer.statusCode ?? 500) < 300) {
          resolve(text);
        } else {
          reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`));
        }
      });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Linux counts in hundredths of a second. */
function cpuMicrosOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

function median(figures: readonly Figures[]): Figures {
  const sorted = figures.toSorted((one, other) => one.perSecond - other.perSecond);
  return sorted[Math.floor(sorted.length / 2)] as Figures;
}

function row(name: string, { perSecond, cpuMicros }: Figures, per: string): string {
  return `${name.padEnd(8)} ${perSecond.toFixed(0).padStart(7)} /s  ${cpuMicros.toFixed(0).padStart(5)} us of processor time ${per}\n`;
}
