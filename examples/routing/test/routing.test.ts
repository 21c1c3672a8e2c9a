import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../dist/main.js", import.meta.url));

test("requests of an order meet one instance at a time, and none is lost, while instances join and crash", async () => {
  const server = await startRedis();
  try {
    const run = spawnSync(process.execPath, [program, `redis://127.0.0.1:${server.port}`], {
      encoding: "utf8",
    });
    expect(run.stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^three instances: \d+ requests, 0 of 60 orders moved$/),
      expect.stringMatching(/^instance-4 joins: \d+ requests, [12]?\d of 60 orders moved$/),
      expect.stringMatching(/^instance-2 is killed: \d+ requests, [12]?\d of 60 orders moved$/),
      "acknowledged requests that are lost: 0",
      "orders that two instances served in turns: 0",
    ]);
    expect({ stderr: run.stderr, status: run.status }).toEqual({ stderr: "", status: 0 });
    expect(await server.client().keys("routing-example:*")).toEqual([]);
  } finally {
    await server.stop();
  }
}, 120_000);
