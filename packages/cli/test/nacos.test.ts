import { freePort } from "@holdfast/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { startNacos, type Simulator } from "../../holdfast/test/support/nacos-simulator/simulator.ts";
import { checkNacos } from "../../server/src/doctor/engines/nacos-checks.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose, testUnreachable } from "./support/engine-tests.ts";

describe("holdfast, with the URL of Nacos,", () => {
  const cli = commandLine();
  let cluster: Simulator;
  let url: string;

  beforeAll(async () => {
    cluster = await startNacos({ servers: 2, users: { app: "secret!" } });
    const hosts = cluster.urls.map((one) => new URL(one).host);
    url = `nacos://app:secret%21@${hosts.join(",")}`;
  });

  afterAll(() => cluster.stop());

  testUnreachable(cli, async () => `nacos://user:secret@127.0.0.1:${await freePort()}`);

  test("doctor finds nothing in a healthy cluster, and times a lock", async () => {
    const { topology, findings, probe } = await diagnose(cli, url);
    expect(topology).toBe("nacos");
    expect(findings).toEqual([]);
    expect(probe?.acquire).toBeGreaterThan(0);
  });

  test("doctor finds a server that is alone, old, open and named alone", async () => {
    const alone = await startNacos({ version: "2.2.0" });
    try {
      const { host } = new URL(alone.urls[0] as string);
      const found = await diagnose(
        cli,
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
