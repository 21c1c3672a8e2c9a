import { limitMs, startCluster, startRedis, startSentinels, type RedisServer } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

interface Finding {
  readonly level: string;
  readonly id: string;
  readonly node: string;
  readonly observed: string;
  readonly impact: string;
  readonly fix: string;
  readonly command?: string;
}

interface Diagnosis {
  readonly version: number;
  readonly topology: string;
  readonly nodes: readonly string[];
  readonly findings: readonly Finding[];
  readonly probe: object | null;
  readonly code: number | null;
}

onRedis("doctor", () => {
  const cli = commandLine();
  const started: { stop(): Promise<void> }[] = [];
  afterAll(async () => {
    await Promise.all(started.map((one) => one.stop()));
  });

  async function server(...args: string[]): Promise<RedisServer> {
    const one = await startRedis({ args });
    started.push(one);
    return one;
  }

  async function diagnose(url: string, ...flags: string[]): Promise<Diagnosis> {
    const args = ["doctor", "--json", "--watch-clocks", "100ms", ...flags];
    const { code, out, err } = await cli.run(args, { env: { HOLDFAST_URL: url } });
    expect(err).not.toContain("secret"); // the client library, and Node, may warn
    return { ...(JSON.parse(out) as Omit<Diagnosis, "code">), code };
  }

  const levelsOf = ({ findings }: Diagnosis): Record<string, string> =>
    Object.fromEntries(findings.map(({ id, level }) => [id, level]));

  test("each finding states the risk to locks and the fix, the worst first", async () => {
    const told = await diagnose(cli.url);
    expect(told).toMatchObject({ version: 1, topology: "server", nodes: [`127.0.0.1:${cli.redis.port}`] });
    for (const { observed, impact, fix, level } of told.findings) {
      expect([observed, impact, fix].every((text) => text.length > 3)).toBe(true);
      expect(["critical", "risk", "perf", "info"]).toContain(level);
    }
    const order = told.findings.map(({ level }) => ["critical", "risk", "perf", "info"].indexOf(level));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(told.probe).toMatchObject({
      acquire: expect.any(Number) as number,
      handover: expect.any(Number) as number,
    });
    const people = await cli.run(["doctor", "--watch-clocks", "0"]);
    expect(people.out).toMatch(/^CRITICAL[^]*why: [^]*do: /m);
  });

  test("eviction, missing persistence and a restart are critical", async () => {
    const { port } = await server("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru");
    const told = await diagnose(`redis://127.0.0.1:${port}`, "--ttl", "1h");
    expect(levelsOf(told)).toMatchObject({
      eviction: "critical",
      persistence: "critical",
      restarted: "critical",
    });
    expect(told.code).toBe(2);
  });

  test("losses after a failure are risks, and correct settings give no finding", async () => {
    const log = ["--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"];
    const { port } = await server(
      ...log,
      "--timeout",
      "30",
      "--tcp-keepalive",
      "60",
      "--latency-monitor-threshold",
      "100",
    );
    const told = await diagnose(`redis://127.0.0.1:${port}`);
    const levels = levelsOf(told);
    expect(levels).toMatchObject({ "no-fsync-on-rewrite": "risk", "idle-timeout": "perf" });
    for (const absent of [
      "eviction",
      "persistence",
      "restarted",
      "tcp-keepalive",
      "latency-monitor",
      "clock-step",
    ]) {
      expect(levels).not.toHaveProperty(absent);
    }
    expect(told.code).toBe(0);
    const strict = await diagnose(`redis://127.0.0.1:${port}`, "--fail-on", "risk");
    expect(strict.code).toBe(1);
    expect((await diagnose(cli.url, "--fail-on", "never")).code).toBe(0);
  });

  test("a replica is critical, and a primary that does not wait for its replicas is a risk", async () => {
    const replica = await server("--replicaof", `127.0.0.1 ${cli.redis.port}`, "--replica-read-only", "no");
    const told = await diagnose(`redis://127.0.0.1:${replica.port}`, "--no-probe");
    expect(levelsOf(told)).toMatchObject({ "not-a-primary": "critical", "writable-replica": "critical" });
    await expect
      .poll(async () => levelsOf(await diagnose(cli.url, "--no-probe")), { timeout: limitMs(20_000) })
      .toMatchObject({ "failover-loses-locks": "risk", "isolated-primary": "risk" });
  });

  test("a counter more than a day ahead of the time is critical, and can be accepted", async () => {
    const one = await server();
    const [url, client] = [`redis://127.0.0.1:${one.port}`, one.client()];
    const dayMicros = 86_400_000_000;
    const setAhead = async (micros: number): Promise<number> => {
      const [seconds] = await client.time();
      const number = Number(seconds) * 1_000_000 + micros;
      await client.set("holdfast:fence", number);
      return number;
    };
    await using locks = createLocks(await connect(url));

    await setAhead(dayMicros / 2);
    expect(levelsOf(await diagnose(url))).toMatchObject({ "counter-ahead": "perf" });

    const number = await setAhead(400 * dayMicros);
    await expect(locks.acquire("k")).rejects.toThrow("`holdfast doctor` shows the ways out");
    const told = await diagnose(url, "--no-probe");
    expect(told.findings.find(({ id }) => id === "counter-refused")).toMatchObject({
      level: "critical",
      observed: expect.stringMatching(/^the counter holdfast:fence is (400|399)d/) as string,
      command: "holdfast doctor --accept-counter",
    });
    const flags = ["doctor", "--json", "--no-probe", "--watch-clocks", "0"];
    const accepted = await cli.run([...flags, "--accept-counter"], { env: { HOLDFAST_URL: url } });
    expect(accepted.err).toContain(`accepted the counter holdfast:fence on 127.0.0.1:${one.port}`);
    expect(levelsOf(JSON.parse(accepted.out) as Diagnosis)).toMatchObject({ "counter-ahead": "perf" });
    expect((await locks.acquire("k", { ttlMs: 1_000 })).fencingToken).toBeGreaterThan(number);
    await expect(locks.acquire("other")).resolves.toBeDefined(); // the grant before has kept what was accepted

    await setAhead(500 * dayMicros); // a later damage is no part of what was accepted
    expect(levelsOf(await diagnose(url))).toMatchObject({ "counter-refused": "critical" });
    for (const damaged of ["9007199254740000", "text"]) {
      await client.set("holdfast:fence", damaged);
      const refused = await cli.run([...flags, "--accept-counter"], { env: { HOLDFAST_URL: url } });
      expect(refused.err).toContain("no counter was refused for its lead alone");
      const { findings } = JSON.parse(refused.out) as Diagnosis;
      expect(findings.find(({ id }) => id === "counter-refused")).toMatchObject({
        command: "DEL holdfast:fence",
      });
    }
  });

  test("counters of a cluster can be accepted, and other engines have none", async () => {
    const cluster = await startCluster({ primaries: 3, replicas: 0 });
    started.push(cluster);
    const url = `redis+cluster://127.0.0.1:${String(cluster.ports[0])}`;
    const locks = createLocks(await connect(url));
    const { fencingToken } = await locks.acquire("k", { ttlMs: 60_000 });
    let counter: string | undefined;
    for (const one of cluster.servers) {
      const [key] = await one.client().keys("holdfast:fence:*");
      if (key !== undefined) {
        counter = key;
        await one.client().set(key, String(fencingToken + 200_000_000_000n));
      }
    }
    const flags = ["doctor", "--json", "--no-probe", "--watch-clocks", "0", "--accept-counter"];
    const accepted = await cli.run(flags, { env: { HOLDFAST_URL: url } });
    expect(accepted.err).toContain(`accepted the counter ${String(counter)} on `);
    await locks.close();
    const memory = await cli.run(flags, { env: { HOLDFAST_URL: "postgres://127.0.0.1:1/x" } });
    expect([memory.code, memory.err]).toEqual([64, expect.stringContaining("--accept-counter needs")]);
  });

  test("refused writes without replicas are critical, and slow scripts are a risk", async () => {
    const one = await server("--min-replicas-to-write", "1");
    await one.client().eval("local t = redis.call('TIME') local now = t repeat now = redis.call('TIME') until (now[1] - t[1]) * 1000000 + now[2] - t[2] > 60000", 0); // prettier-ignore
    const told = await diagnose(`redis://127.0.0.1:${one.port}`, "--no-probe", "--ttl", "150ms");
    expect(levelsOf(told)).toMatchObject({ "too-few-replicas": "critical", "slow-scripts": "risk" });
    expect(told.findings.find(({ id }) => id === "too-few-replicas")?.observed).toContain(
      "expected 1 replicas",
    );
  });

  test("an unselectable database is named, with the fix", async () => {
    const { port } = cli.redis;
    const client = cli.redis.client();
    await client.call("ACL", "SETUSER", "noselect", "on", ">secret", "~*", "&*", "+@all", "-select");
    for (const [url, words] of [
      [`redis://noselect:secret@127.0.0.1:${port}/3`, /expected database 3, .*NOPERM/],
      [`redis://127.0.0.1:${port}/99`, /expected database 99, .*out of range/],
    ] as const) {
      const told = await diagnose(url);
      const found = told.findings.find(({ id }) => id === "wrong-database");
      expect(found).toMatchObject({ level: "critical", observed: expect.stringMatching(words) as string });
      expect(found?.fix).toContain("+select");
      expect(levelsOf(told)).toHaveProperty("probe-failed");
      expect(told.code).toBe(2);
    }
  });

  test("a refused user is named, with the fix", async () => {
    const client = cli.redis.client();
    await client.call("ACL", "SETUSER", "right", "on", ">other", "~*", "&*", "+@all");
    const told = await diagnose(`redis://right:secret@127.0.0.1:${cli.redis.port}`);
    const found = told.findings.find(({ id }) => id === "wrong-user");
    expect(found?.observed).toMatch(/the user right: .*WRONGPASS/);
    expect(found?.fix).toContain("ACL GETUSER");
    expect(told.code).toBe(2);
  });

  test("a user without rights: the refused commands and the unread settings are named", async () => {
    const client = cli.redis.client();
    await client.call(
      "ACL",
      "SETUSER",
      "few",
      "on",
      ">secret",
      "~*",
      "&*",
      "+@all",
      "-@admin",
      "-@dangerous",
      "-zpopmin",
    );
    const told = await diagnose(`redis://few:secret@127.0.0.1:${cli.redis.port}`);
    const of = (id: string): Finding | undefined => told.findings.find((one) => one.id === id);
    expect(of("commands-refused")?.observed).toContain("ZPOPMIN");
    expect(
      told.findings.filter(({ id }) => id === "not-checked").map(({ observed }) => observed),
    ).toContainEqual(expect.stringMatching(/^CONFIG GET is refused: NOPERM/));
    expect(told.code).toBe(2);
    expect(JSON.stringify(told)).not.toContain("secret");
  });

  test("a URL is parsed like in the library: a password may contain colons, and an invalid URL is refused", async () => {
    await cli.redis.client().call("ACL", "SETUSER", "colons", "on", ">a:b:c", "~*", "&*", "+@all");
    const told = await diagnose(`redis://colons:a:b:c@127.0.0.1:${cli.redis.port}`, "--no-probe");
    expect(told.nodes).toEqual([`127.0.0.1:${cli.redis.port}`]);
    expect(levelsOf(told)).not.toHaveProperty("unreachable");
    for (const url of ["redis://:100%@127.0.0.1", "constructor://127.0.0.1"]) {
      const { code, err } = await cli.run(["doctor"], { env: { HOLDFAST_URL: url } });
      expect({ code, err }).toEqual({
        code: 78,
        err: expect.stringMatching(/^holdfast: [Ee]xpected/) as unknown,
      });
    }
  });

  test("an unreachable server has exit code 69", async () => {
    const { code, err } = await cli.run(["doctor"], { env: { HOLDFAST_URL: "redis://127.0.0.1:1" } });
    expect(code).toBe(69);
    expect(err).toMatch(/127\.0\.0\.1:1/);
  });

  test("a quorum: one server under two names, an even number, clocks that differ", async () => {
    const other = await server();
    const hosts = [
      `127.0.0.1:${cli.redis.port}`,
      `localhost:${cli.redis.port}`,
      `127.0.0.1:${other.port}`,
      "127.0.0.1:1",
    ];
    const told = await diagnose(`redlock://${hosts.join(",")}?restartGuard=off`, "--no-probe");
    expect(levelsOf(told)).toMatchObject({
      "same-server": "critical",
      "quorum-size": "risk",
      persistence: "critical",
      unreachable: "risk",
    });
  });

  test("a quorum: what a restart of a node does, by its settings and the guard", async () => {
    const nodes = [await server(), await server("--appendonly", "yes", "--appendfsync", "always")];
    const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const of = async (guard: string): Promise<Record<string, string[]>> => {
      const { findings } = await diagnose(`redlock://${hosts}?restartGuard=${guard}`, "--no-probe");
      const nodesOf = (id: string): string[] =>
        findings.flatMap((one) => (one.id === id ? [`${one.level} ${one.command ?? ""}`.trim()] : []));
      return { persistence: nodesOf("persistence"), restarted: nodesOf("restarted") };
    };
    // No guarded node is advised to become durable by a command, because the node would vote too early.
    expect(await of("wait")).toEqual({ persistence: ["info"], restarted: ["info", "info"] });
    expect(await of("trust-durable")).toEqual({ persistence: ["risk"], restarted: ["info", "info"] });
    expect(await of("off")).toEqual({ persistence: ["critical"], restarted: ["critical"] });
  });

  test("a cluster: equal findings of all primaries are reported once", async () => {
    const cluster = await startCluster({ primaries: 3, replicas: 0 });
    started.push(cluster);
    const told = await diagnose(`redis+cluster://127.0.0.1:${cluster.ports[0]}`, "--ttl", "2s");
    expect(told).toMatchObject({ topology: "cluster" });
    expect(told.nodes).toHaveLength(3);
    expect(levelsOf(told)).toMatchObject({
      "primary-without-replica": "risk",
      "full-coverage": "info",
      "minority-window": "risk",
    });
    expect(told.findings.filter(({ id }) => id === "full-coverage")).toHaveLength(1);
    expect(levelsOf(told)).not.toHaveProperty("probe-failed");
  });

  test("sentinels: their number, quorum and timeouts, and the primary that they name", async () => {
    const sentinels = await startSentinels({ replicas: 1, sentinels: 1, downAfterMs: 700 });
    started.push(sentinels);
    const [address] = sentinels.addresses;
    const told = await diagnose(
      `redis+sentinel://127.0.0.1:${address?.port}/${sentinels.name}`,
      "--ttl",
      "1s",
    );
    expect(told.nodes).toEqual([`127.0.0.1:${(await sentinels.primary()).port}`]);
    expect(levelsOf(told)).toMatchObject({
      "few-sentinels": "risk",
      "hasty-failover": "risk",
      "ttl-shorter-than-failover": "risk",
      "failover-loses-locks": "risk",
    });
    expect(levelsOf(told)).not.toHaveProperty("probe-failed");
  });
});
