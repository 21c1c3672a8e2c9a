import { ServerClocks } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { onGalera, startGalera } from "../../holdfast/test/support/galera-cluster.ts";
import { commandLine } from "./support/cli.ts";
import { diagnose } from "./support/engine-tests.ts";

onGalera("holdfast doctor, with the URL of a node of a Galera cluster,", () => {
  const cli = commandLine();

  test("compares the clocks of the nodes, and names the option that a lock needs", async () => {
    await using clocks = await ServerClocks.make(1);
    const cluster = await startGalera(clocks.clocks[0]?.env);
    const [{ url }] = cluster.nodes;
    const findingsOf = async (query: string): Promise<string[]> =>
      (await diagnose(cli, `${url}${query}`)).findings.map(({ id, observed }) => `${id}: ${observed}`);
    expect((await findingsOf("")).join()).toContain("Set the option `maxClockDifferenceMs`");
    expect((await findingsOf("?maxClockDifferenceMs=500")).join()).not.toContain("clock-skew");
    clocks.clocks[0]?.set({ aheadMs: 1_000 });
    expect((await findingsOf("?maxClockDifferenceMs=500")).join()).toMatch(
      /clock-skew: the clock of the node 127.0.0.1:\d+ differs by (9|10)\d+ ms/,
    );
    expect((await findingsOf("?maxClockDifferenceMs=1500")).join()).not.toContain("clock-skew");
    await cluster.stop();
  });
});
