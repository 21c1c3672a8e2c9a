import { expect, test } from "vitest";

import { DelayedConnection } from "../../../support/delayed-connection.ts";
import { steppedClock } from "../../../support/fake-quorum.ts";
import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// A quorum. Nodes execute requests after their replies to the release of the same token, and no client receives
// the replies.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";
const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
/** How long after its sending a request may have an effect: `commandTimeoutMs` and 3 s. */
const latestMs = 5_000;

test("a request that a node executes after its clean-up leaves no vote", async () => {
  const { fixture, lines, side } = await late();
  keepBack(lines, ["acquire"]);
  const refused = side.locks.acquire("k", { ttlMs, waitMs: 300 }).catch((error: unknown) => error);
  expect(await fixture.settleWithin(1_000, refused)).toMatchObject({ code: "quorum-not-reached" });
  await fixture.advance(500);
  executeUnheard(lines);
  await fixture.advance(10);
  expect(votes(fixture)).not.toContain(null);
  await fixture.advance(latestMs);
  expect(votes(fixture)).toEqual([null, null, null]);
});

test("a request that a node executes after the release of its lease leaves no vote", async () => {
  const { fixture, lines, side } = await late();
  lines[2]?.holdBack(["acquire"]);
  const lease = await fixture.settleWithin(100, side.locks.acquire("k", { ttlMs, renew: false }));
  expect(await fixture.settleWithin(500, lease.release())).toBe(true);
  lines[2]?.executeHeld();
  await fixture.advance(10);
  expect(votes(fixture)).toEqual([null, null, expect.any(String)]);
  await fixture.advance(latestMs);
  expect(votes(fixture)).toEqual([null, null, null]);
});

test("a refill that a node executes after the release of its lease leaves no vote", async () => {
  const { fixture, lines, side } = await late();
  const lease = await fixture.settleWithin(100, side.locks.acquire("k", { ttlMs, renew: false }));
  fixture.loseData(2);
  lines[2]?.holdBack(["refill"]);
  await fixture.settleWithin(100, lease.extend(ttlMs));
  expect(await fixture.settleWithin(500, lease.release())).toBe(true);
  await fixture.advance(ttlMs / 2); // the refill may have an effect until the end of the lease
  lines[2]?.executeHeld();
  await fixture.advance(10);
  expect(votes(fixture)).toEqual([null, null, expect.any(String)]);
  await fixture.advance(ttlMs / 2);
  expect(votes(fixture)).toEqual([null, null, null]);
});

test("a token whose requests all have replies is released once on each node", async () => {
  const { fixture, lines, side } = await late();
  const before = lines.map((line) => line.whenSent("release"));
  const lease = await fixture.settleWithin(100, side.locks.acquire("k", { ttlMs }));
  await fixture.settleWithin(100, lease.release());
  await fixture.advance(3 * latestMs);
  expect(lines.map((line, index) => line.whenSent("release") - (before[index] ?? 0))).toEqual([1, 1, 1]);
});

test("a queue entry is removed for as long as the slow clock of its node lets it wait", async () => {
  const fixture = new QuorumFixture(3, (clock, index) => ({
    clock: index === 2 ? steppedClock(clock, () => -150) : clock,
  }));
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  await fixture.settleWithin(100, holder.locks.acquire("k", { ttlMs }));
  const waiting = waiter.locks.acquire("k", { ttlMs: 100, waitMs: 1_000 }).catch((error: unknown) => error);
  await fixture.advance(900);
  waiter.faults[2]?.refuse(refused);
  expect(await fixture.settleWithin(350, waiting)).toMatchObject({ code: "wait-timeout" });
  const entries = (): boolean[] => fixture.servers.map((server) => server.dump(queue) !== undefined);
  expect(entries()).toEqual([false, false, true]); // its TTL and deadline have passed by all clocks but that of its node
  waiter.faults[2]?.refuse(null);
  await fixture.advance(latestMs);
  expect(entries()).toEqual([false, false, false]);
});

async function late(): Promise<{
  fixture: QuorumFixture;
  lines: readonly DelayedConnection[];
  side: QuorumClient;
}> {
  const fixture = new QuorumFixture();
  const lines: DelayedConnection[] = [];
  const side = await fixture.client({}, (connection) => {
    const line = new DelayedConnection(connection);
    lines.push(line);
    return line;
  });
  return { fixture, lines, side };
}

function keepBack(lines: readonly DelayedConnection[], operations: readonly string[]): void {
  for (const line of lines) {
    line.holdBack(operations);
  }
}

function executeUnheard(lines: readonly DelayedConnection[]): void {
  for (const line of lines) {
    line.executeHeld();
  }
}

function votes(fixture: QuorumFixture): (string | null)[] {
  return fixture.servers.map((server) => server.get(lock));
}
