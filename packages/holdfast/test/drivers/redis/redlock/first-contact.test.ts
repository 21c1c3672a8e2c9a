import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, QuorumError } from "holdfast";
import { redlock } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

const longUp = 3_600_000;

let clock: ManualClock;
let nodes: ReturnType<typeof faulty>[];

beforeEach(() => {
  clock = manualClock();
  nodes = ["a", "b", "c"].map((name, seed) =>
    faulty(new FakeRedis({ clock, name, random: manualRandom(seed), upForMs: longUp }).connect(), { clock }),
  );
});

function controlsOf(index: number): FaultInjector {
  return (nodes[index] as ReturnType<typeof faulty>).controls;
}

function open(): ReturnType<typeof createLocks> {
  const connections = nodes.map(({ connection }) => connection);
  return createLocks(redlock(connections, { clock, random: manualRandom(9) }));
}

test("without any contact to a majority, an acquire ends at waitMs and reports each node", async () => {
  controlsOf(1).freeze();
  controlsOf(2).freeze();
  const begun = clock.now();
  const refused = open()
    .acquire("k", { waitMs: 3_000 })
    .then(
      () => expect.unreachable(),
      (error: unknown) => ({ error, afterMs: clock.now() - begun }),
    );
  await clock.advance(10_000);
  const { error, afterMs } = await refused;
  expect(afterMs).toBe(3_000);
  expect(error).toBeInstanceOf(QuorumError);
  expect((error as QuorumError).votes).toMatchObject([
    { node: "a", vote: "error" },
    { node: "b", vote: "timeout" },
    { node: "c", vote: "timeout" },
  ]);
  expect((error as QuorumError).outcome).toBe("none"); // the last handshakes were not sent to unresponsive nodes
});

test("an acquire continues when a majority comes up before waitMs has passed", async () => {
  controlsOf(1).freeze();
  controlsOf(2).freeze();
  const acquired = open().acquire("k", { waitMs: 30_000 });
  await clock.advance(5_000);
  controlsOf(1).thaw();
  await clock.advance(5_000);
  expect((await acquired).remainingMs()).toBeGreaterThan(0);
});

test("a node without any contact so far is not awaited", async () => {
  controlsOf(2).freeze();
  const locks = open();
  const lease = locks.acquire("k");
  await clock.advance(1);
  expect(await (await lease).release()).toBe(true);
  const held = locks.acquire("k");
  await clock.advance(1);
  await held;
  const tried = locks.tryAcquire("k");
  await clock.advance(1);
  expect(await tried).toBeNull();
});

test("one node and two nodes are quorums as well", async () => {
  for (const count of [1, 2]) {
    const all = nodes;
    nodes = all.slice(0, count);
    const locks = open();
    nodes = all;
    const [first] = await Promise.all([locks.acquire(`k${count}`), clock.advance(1)]);
    expect(await locks.tryAcquire(`k${count}`)).toBeNull();
    const [released] = await Promise.all([first.release(), clock.advance(1)]);
    expect(released).toBe(true);
  }
});
