import { freePort, waitUntil } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { startNacos, type Simulator } from "../../holdfast/test/support/nacos-simulator/simulator.ts";
import { checkNacos } from "../../server/src/doctor/engines/nacos-checks.ts";
import { commandLine, type ExitResult, type RunningProcess } from "./support/cli.ts";

interface Diagnosis {
  readonly topology: string;
  readonly findings: readonly { readonly id: string; readonly level: string; readonly node: string }[];
  readonly probe: { readonly acquire: number } | null;
}

describe("holdfast, with the URL of Nacos,", () => {
  const cli = commandLine();
  let cluster: Simulator;
  let env: { readonly HOLDFAST_URL: string };

  beforeAll(async () => {
    cluster = await startNacos({ servers: 2, users: { app: "secret!" } });
    const hosts = cluster.urls.map((url) => new URL(url).host);
    env = { HOLDFAST_URL: `nacos://app:secret%21@${hosts.join(",")}` };
  });

  afterAll(() => cluster.stop());

  const run = (...args: string[]): Promise<ExitResult> => cli.run(args, { env });

  async function holding(key: string): Promise<RunningProcess> {
    const command = ["sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60"];
    const holder = cli.start(["run", "-k", key, "--ttl", "3s", "--", ...command], { env });
    await waitUntil(() => holder.out() !== "", "the command runs");
    return holder;
  }

  test("runs a command under a lock, shows the lock, and breaks it", async () => {
    const holder = await holding("nightly");
    const fencingToken = holder.out().trim();
    expect((await run("run", "-k", "nightly", "--wait", "0", "--", "true")).code).toBe(75);
    expect(JSON.parse((await run("ls", "--json")).out)).toMatchObject({ locks: [{ key: "nightly" }] });
    const inspected = await run("inspect", "nightly", "--json");
    expect(JSON.parse(inspected.out)).toMatchObject({
      key: "nightly",
      holders: [{ fencingToken, heldMs: expect.any(Number) as number }],
    });
    const broken = await run("release", "--force", "nightly", "--fence", fencingToken, "--reason", "test");
    expect(broken.code).toBe(0);
    expect((await holder.ended).code).not.toBe(0);
    expect((await run("run", "-k", "nightly", "--wait", "0", "--", "true")).code).toBe(0);
  });

  test("serves the lock service, which keeps its locks in Nacos", async () => {
    const service = cli.start(["serve", "--port", "0"], { env });
    await waitUntil(() => service.out().endsWith("\n"), "it listens");
    const [byService, direct] = await Promise.all([connect(service.out().trim()), connect(env.HOLDFAST_URL)]);
    const [here, there] = [createLocks(byService), createLocks(direct)];
    const lease = await here.acquire("served", { owner: "client" });
    expect((await there.inspect("served")).holders).toMatchObject([
      { owner: "client", fencingToken: lease.fencingToken },
    ]);
    const waiting = there.acquire("served");
    await lease.release();
    await (await waiting).release();
    await Promise.all([here.close(), there.close()]);
    service.kill("SIGTERM");
    expect((await service.ended).code).toBe(0);
  });

  test("doctor finds nothing in a healthy cluster, and times a lock", async () => {
    const { topology, findings, probe } = await diagnosed(env.HOLDFAST_URL);
    expect(topology).toBe("nacos");
    expect(findings).toEqual([]);
    expect(probe?.acquire).toBeGreaterThan(0);
  });

  test("doctor finds a server that is alone, old, open and named alone", async () => {
    const alone = await startNacos({ version: "2.2.0" });
    try {
      const { host } = new URL(alone.urls[0] as string);
      const found = await diagnosed(
        `nacos://127.0.0.1:${await freePort()},${host}`,
        "--no-probe",
        "--ttl",
        "5s",
      );
      expect(found.findings.map(({ id }) => id).sort()).toEqual([
        "no-authentication",
        "short-ttl",
        "standalone",
        "too-old",
        "unreachable",
      ]);
    } finally {
      await alone.stop();
    }
  });

  test("doctor names an unreachable server, without the password of the URL", async () => {
    const unreachable = { HOLDFAST_URL: `nacos://user:secret@127.0.0.1:${await freePort()}` };
    const { code, err } = await cli.run(["doctor"], { env: unreachable });
    expect(code).toBe(69);
    expect(err).toContain("ECONNREFUSED");
    expect(err).not.toContain("secret");
  });

  async function diagnosed(target: string, ...args: string[]): Promise<Diagnosis> {
    const { out, err } = await cli.run(["doctor", "--json", ...args], { env: { HOLDFAST_URL: target } });
    expect(err).toBe("");
    return JSON.parse(out) as Diagnosis;
  }
});

describe("the checks of Nacos", () => {
  const node = {
    node: "h1:8848",
    reachable: true,
    latencyMs: 1,
    version: "3.1.0",
    role: "cluster",
    replication: null,
    runId: null,
    uptimeMs: null,
    clockOffsetMs: 0,
    notifications: "unavailable",
    quarantine: null,
    error: null,
  } as const;
  const healthy = { nodes: [node, { ...node, node: "h2:8848" }], ttlMs: 30_000, hasUser: true };

  test("find nothing in a healthy cluster", () => {
    expect(checkNacos(healthy)).toEqual([]);
  });

  test.each([
    ["too-old", "critical", { nodes: [node, { ...node, version: "2.3.1" }] }],
    ["too-old", "critical", { nodes: [node, { ...node, version: "1.4.8" }] }],
    ["one-server-in-url", "risk", { nodes: [node] }],
    ["clocks-differ", "risk", { nodes: [node, { ...node, clockOffsetMs: -31_000 }] }],
    ["no-authentication", "critical", { hasUser: false }],
    [
      "no-authentication",
      "risk",
      { hasUser: false, nodes: [node, node].map((one) => ({ ...one, node: "127.0.0.1:1" })) },
    ],
    ["short-ttl", "perf", { ttlMs: 5_000 }],
  ])("find %s with the level %s for %o", (id, level, facts) => {
    expect(checkNacos({ ...healthy, ...facts })).toMatchObject([{ id, level }]);
  });

  test.each(["2.3.2", "2.4.0-BETA", "2.10.0", "3.0.0"])("find nothing in version %s", (version) => {
    expect(checkNacos({ ...healthy, nodes: [node, { ...node, version }] })).toEqual([]);
  });
});
