import { afterAll, beforeAll, expect, test } from "vitest";

import {
  onZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../holdfast/test/support/zookeeper-server.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose, testUnreachable } from "./support/engine-tests.ts";

onZooKeeper("holdfast, with the URL of ZooKeeper,", () => {
  const cli = commandLine();
  let server: ZooKeeperServer;
  let url: string;

  beforeAll(async () => {
    server = await startZooKeeper();
    url = `zookeeper://${server.address}`;
  });

  afterAll(() => server.stop());

  testUnreachable(cli, () => "zookeeper://user:secret@127.0.0.1:1");

  test("doctor finds a server without an ensemble and a missing member, and times a lock", async () => {
    const found = await diagnose(cli, url);
    expect(found.topology).toBe("zookeeper");
    expect(found.findings).toMatchObject([{ id: "standalone", level: "risk" }]);
    expect(found.probe?.acquire).toBeGreaterThan(0);
    const missing = { HOLDFAST_URL: `zookeeper://127.0.0.1:1,${server.address}` };
    const { out } = await cli.run(["doctor", "--no-probe"], { env: missing });
    expect(out).toContain("the server does not reply");
  });
});
