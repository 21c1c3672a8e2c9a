import { expect, test } from "vitest";

import { LateLine } from "../../../support/delayed-connection.ts";
import { Stage, type Side } from "../../../support/quorum-fixture.ts";

// A quorum. Requests that nodes execute behind the answers to their token's releases, and of which nobody hears.

const ttlMs = 30_000;
const lock = "lock:k";
/** How long after its sending a request has an effect: `commandTimeoutMs` and 3 s. */
const latestMs = 5_000;

test("what a node executes behind the clean-up of a request leaves no vote", async () => {
  const { stage, lines, side } = await late();
  keepBack(lines, ["acquire"]);
  const refused = side.locks.acquire("k", { ttlMs, waitMs: 300 }).catch((error: unknown) => error);
  expect(await stage.within(1_000, refused)).toMatchObject({ code: "quorum-not-reached" });
  await stage.pass(500);
  executeUnheard(lines);
  await stage.pass(10);
  expect(votes(stage)).not.toContain(null);
  await stage.pass(latestMs);
  expect(votes(stage)).toEqual([null, null, null]);
});

test("what a node executes behind the release of a lease leaves no vote", async () => {
  const { stage, lines, side } = await late();
  lines[2]?.holdBack(["acquire"]);
  const lease = await stage.within(100, side.locks.acquire("k", { ttlMs, renew: false }));
  expect(await stage.within(500, lease.release())).toBe(true);
  lines[2]?.executeUnheard();
  await stage.pass(10);
  expect(votes(stage)).toEqual([null, null, expect.any(String)]);
  await stage.pass(latestMs);
  expect(votes(stage)).toEqual([null, null, null]);
});

test("a refill that a node executes behind the release of its lease leaves no vote", async () => {
  const { stage, lines, side } = await late();
  const lease = await stage.within(100, side.locks.acquire("k", { ttlMs, renew: false }));
  stage.forget(2);
  lines[2]?.holdBack(["refill"]);
  await stage.within(100, lease.extend(ttlMs));
  expect(await stage.within(500, lease.release())).toBe(true);
  await stage.pass(ttlMs / 2); // the refill has an effect until the end of the lease
  lines[2]?.executeUnheard();
  await stage.pass(10);
  expect(votes(stage)).toEqual([null, null, expect.any(String)]);
  await stage.pass(ttlMs / 2);
  expect(votes(stage)).toEqual([null, null, null]);
});

test("a token whose questions are all answered is released once on each node", async () => {
  const { stage, lines, side } = await late();
  const before = lines.map((line) => line.said("release"));
  const lease = await stage.within(100, side.locks.acquire("k", { ttlMs }));
  await stage.within(100, lease.release());
  await stage.pass(3 * latestMs);
  expect(lines.map((line, index) => line.said("release") - (before[index] ?? 0))).toEqual([1, 1, 1]);
});

async function late(): Promise<{ stage: Stage; lines: readonly LateLine[]; side: Side }> {
  const stage = new Stage();
  const lines: LateLine[] = [];
  const side = await stage.side({}, (connection) => {
    const line = new LateLine(connection);
    lines.push(line);
    return line;
  });
  return { stage, lines, side };
}

function keepBack(lines: readonly LateLine[], operations: readonly string[]): void {
  for (const line of lines) {
    line.holdBack(operations);
  }
}

function executeUnheard(lines: readonly LateLine[]): void {
  for (const line of lines) {
    line.executeUnheard();
  }
}

function votes(stage: Stage): (string | null)[] {
  return stage.servers.map((server) => server.get(lock));
}
