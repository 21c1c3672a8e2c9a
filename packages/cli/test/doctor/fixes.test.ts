import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endProcess, redisProgram, stablePort, startRedis, waitUntil } from "@holdfast/test-kit";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

interface Finding {
  readonly id: string;
  readonly fix: string;
  readonly command?: string;
}

onRedis("the fixes of doctor", () => {
  const cli = commandLine();
  const ends: (() => unknown)[] = [];
  afterAll(async () => {
    for (const end of ends.reverse()) {
      await end();
    }
  });

  async function findings(port: number): Promise<readonly Finding[]> {
    const args = ["doctor", "--json", "--watch-clocks", "100ms"];
    const { out } = await cli.run(args, { env: { HOLDFAST_URL: `redis://127.0.0.1:${port}` } });
    return (JSON.parse(out) as { findings: Finding[] }).findings;
  }

  test("outlast a restart of a server that has a configuration file", async () => {
    const port = await stablePort();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-fixes-"));
    ends.push(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "redis.conf");
    const risks = ["maxmemory 100mb", "maxmemory-policy allkeys-lru", "timeout 600", "tcp-keepalive 0", "hz 1", 'save ""']; // prettier-ignore
    writeFileSync(path, [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, ...risks, ""].join("\n"));
    let server = await start(path, port);
    ends.push(() => endProcess(server));
    const commands = (await findings(port)).filter(({ command }) => command?.startsWith("CONFIG SET"));
    const ids = commands.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["eviction", "persistence", "idle-timeout", "tcp-keepalive"]));
    for (const { command = "" } of commands) {
      for (const line of command.split("; ")) {
        expect(await typed(port, line), line).toBe("+OK\r\n");
      }
    }
    await endProcess(server);
    server = await start(path, port);
    const left = (await findings(port)).map(({ id }) => id);
    expect(ids.filter((id) => left.includes(id))).toEqual([]);
  });

  test("name what starts the server, if it has no configuration file", async () => {
    const server = await startRedis({ args: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"] });
    ends.push(() => server.stop());
    const eviction = (await findings(server.port)).find(({ id }) => id === "eviction");
    expect(eviction?.command).toBe("CONFIG SET maxmemory-policy noeviction");
    expect(eviction?.fix).toMatch(/no configuration file, so change what starts it/);
  });
});

async function start(configuration: string, port: number): Promise<ChildProcess> {
  const child = spawn(redisProgram, [configuration], { stdio: "ignore" });
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: () => 20 });
  client.on("error", () => undefined);
  await waitUntil(async () => (await client.ping()) === "PONG", "the server replies");
  client.disconnect();
  return child;
}

/** The reply to a line that a person types. */
async function typed(port: number, line: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`${line}\r\n`);
  const [reply] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return reply.toString();
}
