import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { freePort, makeCertificates, waitUntil } from "@holdfast/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import {
  onEtcd,
  startEtcd,
  startEtcdCluster,
  type EtcdCluster,
  type EtcdServer,
} from "../../holdfast/test/support/etcd-server.ts";
import { checkEtcd } from "../../server/src/doctor/engines/etcd-checks.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose, testUnreachable, type Diagnosis } from "./support/engine-tests.ts";

onEtcd("holdfast, with the URL of etcd,", () => {
  const cli = commandLine();
  let server: EtcdServer;
  let url: string;

  beforeAll(async () => {
    server = await startEtcd();
    url = server.url.replace("http:", "etcd:");
  });

  afterAll(() => server.stop());

  testUnreachable(cli, async () => `etcd://user:secret@127.0.0.1:${await freePort()}`);

  test("doctor finds a cluster of one member without users, and times a lock", async () => {
    const found = await diagnose(cli, url, "--ttl", "1h");
    expect(found.topology).toBe("etcd");
    expect(found.findings).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ id: "single-member", level: "risk" }),
        expect.objectContaining({ id: "no-authentication", level: "risk" }),
      ]),
    );
    expect(found.probe?.acquire).toBeGreaterThan(0);
  });

  test("doctor finds an alarm", async () => {
    const alarm = { action: "ACTIVATE", memberID: "1", alarm: "NOSPACE" };
    await post(server.url, "maintenance/alarm", alarm);
    try {
      const { findings } = await diagnose(cli, url, "--no-probe");
      expect(findings[0]).toMatchObject({ id: "alarm-nospace", level: "critical" });
    } finally {
      await post(server.url, "maintenance/alarm", { ...alarm, action: "DEACTIVATE" });
    }
  });

  test("doctor checks a cluster with users by the user of the URL", async () => {
    const secured = await startEtcd();
    try {
      await post(secured.url, "auth/user/add", { name: "root", password: "secret!" });
      await post(secured.url, "auth/user/grant", { user: "root", role: "root" });
      await post(secured.url, "auth/enable", {});
      const withUser = secured.url.replace("http://", "etcd://root:secret%21@");
      const found = await diagnose(cli, withUser);
      expect(found.probe?.acquire).toBeGreaterThan(0);
      expect(idsOf(found)).not.toContain("no-authentication");
      expect(idsOf(found)).not.toContain("unreadable");
      const wrongPassword = { env: { HOLDFAST_URL: withUser.replace("secret", "wrong") } };
      const refused = await cli.run(["doctor", "--json", "--no-probe"], wrongPassword);
      expect(refused.out).toContain("authentication failed");
      expect(refused.out + refused.err).not.toContain("wrong");
      const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
      expect((await cli.run(command, wrongPassword)).code).toBe(77);
      expect(
        (await cli.run(command, { env: { HOLDFAST_URL: secured.url.replace("http:", "etcd:") } })).code,
      ).toBe(77);
    } finally {
      await secured.stop();
    }
  });

  test("sends nothing to a server with a certificate of an unknown authority", async () => {
    await using certificates = await makeCertificates();
    const secured = await startEtcd(certificates);
    try {
      const target = { HOLDFAST_URL: secured.url.replace("https:", "etcds:") };
      const trusting = { ...target, NODE_EXTRA_CA_CERTS: certificates.caFile };
      const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
      expect((await cli.run(command, { env: trusting })).code).toBe(0);
      const found = JSON.parse((await cli.run(["doctor", "--json"], { env: trusting })).out) as Diagnosis;
      expect(found.probe?.acquire).toBeGreaterThan(0);
      for (const args of [command, ["doctor"]]) {
        const { code, err } = await cli.run(args, { env: target });
        expect(code).toBe(69);
        expect(err).toMatch(/certificate/);
      }
    } finally {
      await secured.stop();
    }
  });

  test("doctor refuses a version without the paths of the gateway", async () => {
    const old = createServer((request, response) => {
      response.statusCode = request.url === "/version" ? 200 : 404;
      response.end(request.url === "/version" ? '{"etcdserver":"3.3.27"}' : "404 page not found");
    });
    await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
    try {
      const found = await diagnose(
        cli,
        `etcd://127.0.0.1:${(old.address() as AddressInfo).port}`,
        "--no-probe",
      );
      expect(found.findings[0]).toMatchObject({ id: "too-old", level: "critical" });
    } finally {
      old.close();
    }
  });

  test("doctor finds a member that is down, and the loss of the majority", async () => {
    const cluster: EtcdCluster = await startEtcdCluster(3);
    try {
      const hosts = cluster.urls.map((one) => new URL(one).host);
      const all = `etcd://${hosts.join(",")}`;
      const healthy = await diagnose(cli, all, "--ttl", "1h");
      expect(healthy.nodes).toEqual(hosts);
      expect(idsOf(healthy)).not.toContain("no-leader");
      expect(idsOf(await diagnose(cli, `etcd://${hosts[0]}`, "--no-probe"))).toContain("one-endpoint");
      await cluster.members[2]?.kill();
      const { findings } = await diagnose(cli, all, "--no-probe");
      expect(findings).toContainEqual(expect.objectContaining({ id: "unreachable", node: hosts[2] }));
      await cluster.members[1]?.kill();
      await waitUntil(
        async () => idsOf(await diagnose(cli, all, "--no-probe")).includes("no-leader"),
        "the last member has no leader",
      );
    } finally {
      await cluster.stop();
    }
  });
});

describe("the checks of etcd", () => {
  const member = { node: "h1:2379", version: "3.5.13", leader: "1" };
  const healthy = {
    members: [member],
    endpoints: ["h1:2379", "h2:2379", "h3:2379"],
    size: 3,
    alarms: [],
    isOpen: false,
    writeMs: 10,
    ttlMs: 30_000,
  };

  test("find nothing in a healthy cluster", () => {
    expect(checkEtcd(healthy)).toEqual([]);
  });

  test.each([
    ["slow-writes", "risk", { writeMs: 1_100 }],
    ["slow-writes", "risk", { ttlMs: 200 }],
    ["even-members", "info", { size: 4 }],
    ["no-authentication", "critical", { isOpen: true }],
    ["alarm-corrupt", "critical", { alarms: ["CORRUPT"] }],
    ["late-revocation", "risk", { members: [{ ...member, version: "3.4.30" }] }],
    ["late-revocation", "risk", { members: [{ ...member, version: "3.5.12" }] }],
  ])("find %s with the level %s for %o", (id, level, facts) => {
    expect(checkEtcd({ ...healthy, ...facts })).toMatchObject([{ id, level }]);
  });

  test.each(["3.4.31", "3.6.0", "4.0.0"])("find nothing in version %s", (version) => {
    expect(checkEtcd({ ...healthy, members: [{ ...member, version }] })).toEqual([]);
  });
});

function idsOf({ findings }: Diagnosis): string[] {
  return findings.map(({ id }) => id);
}

async function post(url: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${url}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
  expect(response.ok, `${path}: ${await response.text()}`).toBe(true);
}
