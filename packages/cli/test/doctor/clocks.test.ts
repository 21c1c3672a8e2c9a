import { ServerClocks, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("doctor, of clocks,", () => {
  const cli = commandLine();
  let made: ServerClocks;
  let servers: RedisServer[];

  beforeAll(async () => {
    made = await ServerClocks.make(3);
    servers = await Promise.all(made.clocks.map(({ env }) => startRedis({ env })));
  });

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await made[Symbol.asyncDispose]();
  });

  const found = (out: string): Record<string, string> => {
    const { findings } = JSON.parse(out) as { findings: { id: string; level: string; observed: string }[] };
    return Object.fromEntries(findings.map(({ id, level, observed }) => [id, `${level}: ${observed}`]));
  };

  test("of a quorum are critical if they differ, and no finding if they agree", async () => {
    const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
    const env = { HOLDFAST_URL: `redlock://${hosts.join(",")}?restartGuard=off` };
    const args = ["doctor", "--json", "--no-probe", "--watch-clocks", "0", "--ttl", "60s"];
    expect(found((await cli.run(args, { env })).out)).not.toHaveProperty("clock-skew");
    made.clocks[1]?.set({ aheadMs: 5_000 });
    const { out, code } = await cli.run(args, { env });
    made.clocks[1]?.set({});
    expect(code).toBe(2);
    expect(found(out)["clock-skew"]).toMatch(/^critical: the clocks of .* are 5s apart/);
  });

  test("of a replica are a risk if they are ahead of that of the primary", async () => {
    const [primary, replica] = servers as [RedisServer, RedisServer];
    const client = replica.client();
    await client.replicaof("127.0.0.1", primary.port);
    await waitUntil(
      async () => /slave0:.*state=online/.test(await primary.client().info("replication")),
      "the replica follows",
    );
    const env = { HOLDFAST_URL: `redis://127.0.0.1:${primary.port}` };
    const args = ["doctor", "--json", "--no-probe", "--watch-clocks", "0", "--ttl", "60s"];
    expect(found((await cli.run(args, { env })).out)).not.toHaveProperty("replica-clock-ahead");
    made.clocks[1]?.set({ aheadMs: 5_000 });
    const { out } = await cli.run(args, { env });
    made.clocks[1]?.set({});
    await client.call("REPLICAOF", "NO", "ONE");
    expect(found(out)["replica-clock-ahead"]).toMatch(/^risk: its clock is 5s ahead of that of 127.0.0.1/);
  });

  test("that are set during the check are critical", async () => {
    const [server] = servers as [RedisServer];
    const env = { HOLDFAST_URL: `redis://127.0.0.1:${server.port}` };
    const client = server.client();
    await client.config("RESETSTAT");
    const watching = cli.start(["doctor", "--json", "--no-probe", "--watch-clocks", "10m"], { env });
    const isSampled = async (): Promise<boolean> => /cmdstat_time:calls=9,/.test(await client.info("commandstats")); // prettier-ignore
    await waitUntil(isSampled, "the clock was looked at");
    made.clocks[0]?.set({ aheadMs: 3_000 });
    watching.kill("SIGINT"); // it looks once more
    const { out, code } = await watching.ended;
    made.clocks[0]?.set({});
    expect(code).toBe(2);
    expect(found(out)["clock-step"]).toMatch(
      /^critical: its clock moved by (29|30)\d\d ms against the local clock/,
    );
  });
});
