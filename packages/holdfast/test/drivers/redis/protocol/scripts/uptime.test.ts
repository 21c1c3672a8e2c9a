import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { manualClock } from "holdfast/testing";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../../../../src/drivers/redis/clients/connection.ts";
import {
  handshakeScript,
  executeQuorumScript,
  healthScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { makeClocks } from "../../../../support/clocks.ts";
import { onCleanup, onQuorum } from "../../../../support/quorum-servers.ts";
import { describeWithClocks } from "../../../../support/servers.ts";

// A server computes its uptime by its wall clock. The uptime is negative if that clock was set back after the
// start.

const aheadMs = 100_000;

describeWithClocks("a server that was started with its clock ahead", () => {
  onQuorum("and set right since", () => {
    test("reports a negative uptime in every reply, with all later fields", async () => {
      const [clock] = await makeClocks(1);
      clock?.set({ aheadMs });
      const server = await startRedis(clock ? { env: clock.env } : {});
      onCleanup(() => server.stop());
      clock?.set({});
      await expectNegative(detectConnection(server.client()), server.runId);
    });
  });
});

test("the fake Redis reports a negative uptime as well", async () => {
  const clock = manualClock({ wall: 1_000_000_000 });
  const server = new FakeRedis({ clock, upForMs: -aheadMs });
  await expectNegative(server.connect(), server.runId);
});

async function expectNegative(connection: Connection, runId: string): Promise<void> {
  const handshake = (await connection.run(
    handshakeScript,
    ["client"],
    ["channel", "n", "", "1000"],
  )) as unknown[];
  const stands = (await connection.run(healthScript, [], [])) as unknown[];
  const [header] = (await connection.run(executeQuorumScript, [], ["1000", "1000", "1", "[]"])) as [
    unknown[],
  ];
  const uptimes = [handshake[5], stands[1], header[2]];
  expect([handshake[2], stands[0], header[1]]).toEqual([runId, runId, runId]);
  for (const uptime of uptimes) {
    expect(uptime).toBeGreaterThanOrEqual(-aheadMs / 1_000 - 1);
    expect(uptime).toBeLessThan(-aheadMs / 2_000);
  }
  expect(stands.slice(2)).toEqual(["master", expect.any(String), 0, "noeviction", 0, 0, 0]);
}
