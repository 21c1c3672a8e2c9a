import { limitMs, timeFactor, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import {
  onCleanup,
  holders,
  newKey,
  onQuorum,
  open,
  queued,
  startNodes,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { QuorumWorker, sharedNow } from "../../support/quorum-workers.ts";
import { readTurnRecords, writersOutOfOrder, type TurnStatistics } from "../../support/event-loop-turns.ts";
import { Recording } from "../../support/workers.ts";

const processes = ["a", "b", "c"];
const ttlMs = 2_000;
/** How late a busy machine may be. A waiter without a notification polls every five seconds. */
const slackMs = 2_000 * timeFactor;

type Contended = "read-write" | "all" | "reentrant";

onQuorum("several processes that share locks on a quorum", () => {
  test.each([3, 5])(
    "read-write on %d nodes, nine of ten read: a writer is alone, and every task gets all its turns",
    async (count) => {
      const [key, tasks, rounds] = [newKey(), 4, 10];
      const turns = await contend(await startNodes(count), {
        kind: "read-write",
        keys: [key],
        tasks,
        rounds,
      });
      const { heaviest, counts } = turnsAt(turns, key);
      expect(heaviest).toBe(1000); // a writer counts as a thousand readers
      expect([...counts.values()]).toEqual(Array.from({ length: processes.length * tasks }, () => rounds));
      expect(writersOutOfOrder(turnsAt(turns, key))).toEqual([]);
    },
  );

  test("several of five keys in any order: no deadlock, and one holder at each key", async () => {
    const [tasks, rounds] = [3, 8];
    const keys = Array.from({ length: 5 }, newKey);
    const turns = await contend(await startNodes(3), { kind: "all", keys, tasks, rounds });
    expect(new Set(turns.keys())).toEqual(new Set(keys));
    for (const key of keys) {
      const { concurrentKinds, startedOrder } = turnsAt(turns, key);
      expect(concurrentKinds).toEqual([]);
      expectRising(startedOrder.map(({ token }) => token));
    }
    const all = [...turns.values()].flatMap(({ counts }) => [...counts.keys()]);
    expect(new Set(all).size).toBe(processes.length * tasks);
  });

  test("reentrant, by async scopes and by sessions: no task is inside another's nest, and each nest has one number", async () => {
    const [key, tasks, rounds] = [newKey(), 3, 6];
    const turns = await contend(await startNodes(3), { kind: "reentrant", keys: [key], tasks, rounds });
    const { concurrentKinds, counts, startedOrder } = turnsAt(turns, key);
    expect(concurrentKinds).toEqual([]);
    expect([...counts.values()]).toEqual(Array.from({ length: processes.length * tasks }, () => rounds));
    expectRising(startedOrder.filter(({ weight }) => weight > 0).map(({ token }) => token));
    for (const { token, who } of startedOrder.filter(({ weight }) => weight > 0)) {
      const nest = startedOrder.filter((turn) => turn.token === token);
      expect(nest.length, "the outermost lease and its nested ones").toBeGreaterThanOrEqual(3);
      expect(new Set(nest.map((turn) => turn.who))).toEqual(new Set([who]));
    }
  });
});

onQuorum("a process that dies with a shared lease on a quorum", () => {
  test("a reader: its lease expires, and no other does", async () => {
    const nodes = await startNodes(3);
    const [worker] = await startWorkers(nodes, ["a"]);
    const locks = open(nodes);
    await warmUp(locks);
    const key = newKey();
    await worker?.request("read", { key, options: { ttlMs } }, "granted");
    const stays = await locks.readWrite(key).read.acquire({ ttlMs });
    await worker?.kill();
    const killedAt = performance.now();
    const writing = locks.readWrite(key).write.acquire({ waitMs: 20_000 });
    await waitUntil(
      async () => (await locks.inspect(key)).holders.length === 1,
      "the lease has expired",
      limitMs(20_000),
    );
    expect(performance.now() - killedAt).toBeLessThan(ttlMs + 1_000 + slackMs);
    stays.throwIfLost();
    await waitUntil(
      async () => (await locks.inspect(key)).waiterCount === 1,
      "the writer waits",
      limitMs(20_000),
    );
    await stays.release();
    await (await writing).release();
  });

  test("a holder of one key that waits for the next: the first key is free after its TTL, and the queue entry is skipped", async () => {
    const nodes = await startNodes(3);
    const [worker] = await startWorkers(nodes, ["a"]);
    const locks = open(nodes);
    await warmUp(locks);
    const keys = [newKey(), newKey()].sort() as [string, string];
    const second = await locks.acquire(keys[1]);
    worker?.order("all", { keys, options: { ttlMs, waitMs: 30_000 } });
    const waits = async (): Promise<boolean> => (await locks.inspect(keys[1])).waiterCount === 1;
    await waitUntil(waits, "the process waits for the second key", limitMs(20_000));
    const votes = (await holders(nodes, keys[0])).filter((holder) => holder !== null);
    expect(votes.length, "the process has the first key").toBeGreaterThanOrEqual(2);
    await worker?.kill();
    const killedAt = performance.now();
    const first = await locks.acquire(keys[0], { waitMs: 20_000 });
    expect(performance.now() - killedAt).toBeLessThan(ttlMs + 1_000 + slackMs);
    second.throwIfLost();
    await second.release();
    const next = await locks.acquire(keys[1], { waitMs: 20_000 });
    await Promise.all([first.release(), next.release()]);
  });
});

onQuorum("an election among processes on a quorum", () => {
  test("a killed leader is replaced after its TTL, a resigning leader at once, and all are seen to lead", async () => {
    const nodes = await startNodes(3);
    const [first, ...others] = (await startWorkers(nodes, processes)) as [QuorumWorker, ...QuorumWorker[]];
    const key = newKey();
    const observed = observe(nodes, key);
    const term = await first.request("campaign", { key, options: { ttlMs } }, "granted");
    const campaign = { key, options: { ttlMs: 30_000 } };
    const candidates = others.map((worker) => ({
      worker,
      term: worker.request("campaign", campaign, "granted"),
    }));
    await queued(nodes, key, others.length);
    await waitUntil(() => observed.at(-1) === first.name, "the first is seen to lead", limitMs(20_000));
    const { validUntil } = await first.request("judge", { key }, "judged");
    const killedAt = sharedNow();
    await first.kill();

    const second = await leaderOf(candidates);
    expect(second.term.at).toBeGreaterThan(validUntil); // no process leads beside one that may believe it leads
    expect(second.term.at - killedAt).toBeLessThan(ttlMs + 1_000 + slackMs);
    await waitUntil(
      () => observed.at(-1) === second.worker.name,
      "the second is seen to lead",
      limitMs(20_000),
    );

    const resignedAt = sharedNow();
    expect(await second.worker.request("resign", { key }, "resigned")).toEqual({ key, resigned: true });
    const third = await leaderOf(candidates.filter(({ worker }) => worker !== second.worker));
    expect(third.term.at - resignedAt).toBeLessThan(4_000); // by notification, not by a poll every five seconds
    await waitUntil(
      () => observed.at(-1) === third.worker.name,
      "the third is seen to lead",
      limitMs(20_000),
    );
    expectRising([term, second.term, third.term].map(({ fencingToken }) => BigInt(fencingToken)));
  });

  test("a leader that was frozen past its TTL knows at once that it no longer leads, and may lead again", async () => {
    const nodes = await startNodes(3);
    const [first, other] = (await startWorkers(nodes, ["a", "b"])) as [QuorumWorker, QuorumWorker];
    const key = newKey();
    await first.request("campaign", { key, options: { ttlMs } }, "granted");
    const following = other.request("campaign", { key, options: { ttlMs: 30_000 } }, "granted");
    await queued(nodes, key, 1);
    first.freeze();
    const next = await following;
    first.thaw();
    const { validUntil, isLost } = await first.request("judge", { key }, "judged");
    expect(isLost).toBe(true);
    expect(validUntil).toBeLessThanOrEqual(next.at);
    const again = first.request("campaign", { key, options: { ttlMs } }, "granted");
    await queued(nodes, key, 1);
    await other.request("resign", { key }, "resigned");
    expect(BigInt((await again).fencingToken)).toBeGreaterThan(BigInt(next.fencingToken));
  });
});

interface Candidate {
  readonly worker: QuorumWorker;
  readonly term: Promise<Term>;
}

interface Term {
  readonly fencingToken: string;
  readonly at: number;
}

async function leaderOf(candidates: readonly Candidate[]): Promise<{ worker: QuorumWorker; term: Term }> {
  return Promise.race(candidates.map(async ({ worker, term }) => ({ worker, term: await term })));
}

/** The successive leaders that another process sees. */
function observe(nodes: readonly QuorumNode[], key: string): (string | undefined)[] {
  const seen: (string | undefined)[] = [];
  const cleanup = new AbortController();
  const election = open(nodes).election(key);
  const watching = (async () => {
    for await (const leader of election.observe({ signal: cleanup.signal })) {
      seen.push(leader?.owner);
    }
  })();
  onCleanup(() => {
    cleanup.abort();
    return watching;
  });
  return seen;
}

async function startWorkers(nodes: readonly QuorumNode[], names: readonly string[]): Promise<QuorumWorker[]> {
  const redlock = { nodeTimeoutMs: 1_500 }; // a busy machine may reply late
  const workers = await Promise.all(
    names.map((name) => QuorumWorker.start({ name, drivers: [nodes], redlock })),
  );
  await Promise.all(workers.map((worker) => worker.request("warmUp", { count: nodes.length }, "warm")));
  return workers;
}

async function contend(
  nodes: readonly QuorumNode[],
  order: { kind: Contended; keys: readonly string[]; tasks: number; rounds: number },
): Promise<ReadonlyMap<string, TurnStatistics>> {
  const workers = await startWorkers(nodes, processes);
  using recording = new Recording();
  const contention = { ...order, record: recording.path };
  await Promise.all(workers.map((worker) => worker.request("contend", contention, "contended")));
  return readTurnRecords(recording.path);
}

function turnsAt(turns: ReadonlyMap<string, TurnStatistics>, key: string): TurnStatistics {
  return turns.get(key) as TurnStatistics;
}

function expectRising(numbers: readonly bigint[]): void {
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => (a < b ? -1 : 1)));
}
