import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { waitUntil } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import {
  onZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../holdfast/test/support/zookeeper-server.ts";
import { commandLine, type ExitResult, type RunningProcess } from "./support/cli.ts";

onZooKeeper("holdfast, with the URL of ZooKeeper,", () => {
  const cli = commandLine();
  let server: ZooKeeperServer;
  let env: { readonly HOLDFAST_URL: string };

  beforeAll(async () => {
    server = await startZooKeeper();
    env = { HOLDFAST_URL: `zookeeper://${server.address}` };
  });

  afterAll(() => server.stop());

  const run = (...args: string[]): Promise<ExitResult> => cli.run(args, { env });

  async function holding(key: string): Promise<RunningProcess> {
    const command = ["sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60"];
    const holder = cli.start(["run", "-k", key, "--", ...command], { env });
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

  test("serves the lock service, which keeps its locks in the ensemble", async () => {
    const service = cli.start(["serve", "--port", "0"], { env });
    await waitUntil(() => service.out().endsWith("\n"), "it listens");
    const urls = [service.out().trim(), env.HOLDFAST_URL];
    const [here, there] = (await Promise.all(urls.map((url) => connect(url)))).map((driver) =>
      createLocks(driver),
    ) as [ReturnType<typeof createLocks>, ReturnType<typeof createLocks>];
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

  test("doctor finds a server without an ensemble and a missing member, and times a lock", async () => {
    const found = JSON.parse((await run("doctor", "--json")).out) as {
      topology: string;
      findings: { id: string; level: string }[];
      probe: { acquire: number } | null;
    };
    expect(found.topology).toBe("zookeeper");
    expect(found.findings).toMatchObject([{ id: "standalone", level: "risk" }]);
    expect(found.probe?.acquire).toBeGreaterThan(0);
    const missing = { HOLDFAST_URL: `zookeeper://127.0.0.1:1,${server.address}` };
    const { out } = await cli.run(["doctor", "--no-probe"], { env: missing });
    expect(out).toContain("the server does not reply");
  });

  test("doctor names an unreachable server, without the password of the URL", async () => {
    const unreachable = { HOLDFAST_URL: "zookeeper://user:secret@127.0.0.1:1" };
    const { code, err } = await cli.run(["doctor"], { env: unreachable });
    expect(code).toBe(69);
    expect(err).toContain("ECONNREFUSED");
    expect(err).not.toContain("secret");
  });
});
