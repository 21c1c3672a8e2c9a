import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../dist/main.js", import.meta.url));

const expected = [
  "reentrant:",
  "  writes the sales",
  "  writes the costs",
  "  nobody else writes",
  "readWrite:",
  "  2 customers look at 10",
  "  a change waits for them",
  "  another one looks at 12",
  "semaphore:",
  "  at most 3 calls at once",
  "severalKeys:",
  "  together 200",
  "election:",
  "  the first leads",
  "  and the second sees it",
  "  the second leads",
  "  its number is larger",
  "latch:",
  "  shard one is warm, 2 are not",
  "  shard two is warm, 1 are not",
  "  shard two is warm, 1 are not",
  "  shard three is warm, 0 are not",
  "  the doors open",
];

function run(...args: string[]): { lines: string[]; stderr: string; status: number | null } {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
  return { lines: stdout.trimEnd().split("\n"), stderr, status };
}

test("each kind of lock works as its example states, in memory", () => {
  expect(run()).toEqual({ lines: expected, stderr: "", status: 0 });
});

test("each kind of lock works as its example states, on a real server", async () => {
  const server = await startRedis();
  try {
    expect(run(`redis://127.0.0.1:${server.port}`)).toEqual({ lines: expected, stderr: "", status: 0 });
  } finally {
    await server.stop();
  }
});
