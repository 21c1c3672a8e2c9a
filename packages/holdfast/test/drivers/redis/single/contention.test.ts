import type { LocksOptions } from "holdfast";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { limitMs, startRedis, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../../support/servers.ts";
import { Recording, startWorkers, type RecordEntry, type Worker } from "../../../support/workers.ts";

const processes = 4;
const tasks = 8;
const handovers = 16;
const windows = 5;

interface Mode {
  readonly name: string;
  readonly options: LocksOptions;
  /** Redis commands, with those inside scripts, for each acquisition. A herd of woken waiters needs hundreds. */
  readonly mostCommands: number;
  /** The acquisitions of each task. Each turn of the strict order wakes another process, which takes long on a busy machine. */
  readonly share: number;
  /** How many turns one task may have more than another, beside a tenth. */
  readonly lead: number;
  /** The size of the record of a window: 60 bytes for an acquisition. */
  readonly windowBytes: number;
}

const modes: readonly Mode[] = [
  {
    name: "with hand-over",
    options: {},
    mostCommands: 2,
    share: 80,
    lead: 2 * handovers,
    windowBytes: 20_000,
  },
  {
    name: "without hand-over",
    options: { handover: false },
    mostCommands: 20,
    share: 20,
    lead: 4,
    windowBytes: 4_000,
  },
];

/** The result of a run of all tasks on one key. */
interface Run {
  readonly entries: readonly RecordEntry[];
  /** The acquisitions while all tasks ran. */
  readonly shares: ReadonlyMap<string, number>;
  /** Redis commands per acquisition, in each of several windows. */
  readonly commands: readonly number[];
  readonly waits: readonly number[];
  readonly losses: number;
}

onRedis(`${processes} processes with ${tasks} tasks each`, () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server.stop();
  });

  for (const mode of modes) {
    const { name, mostCommands } = mode;
    describe(`on one key, ${name},`, () => {
      let run: Run;

      beforeAll(async () => {
        run = await contend(server, `contention ${name}`, mode);
      });

      test("never hold the lock at the same time", () => {
        expect(overlaps(run.entries)).toEqual([]);
      });

      test("get fencing tokens that rise over all grants", () => {
        const tokens = run.entries.filter(({ what }) => what === "begin").map((entry) => entry.fencingToken);
        const fallen = tokens.filter((token, i) => i > 0 && token <= (tokens[i - 1] as bigint));
        expect(fallen).toEqual([]);
      });

      test("get equal shares", () => {
        const shares = Array.from(run.shares.values());
        const [smallest, largest] = [Math.min(...shares), Math.max(...shares)];
        const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
        expect(shares).toHaveLength(processes * tasks);
        expect(smallest).toBeGreaterThanOrEqual(mode.share);
        expect(largest - smallest).toBeLessThanOrEqual(mean / 10 + mode.lead);
      });

      test("lose no lease", () => {
        expect(run.losses).toBe(0);
      });

      test(`need at most ${mostCommands} commands for an acquisition`, () => {
        expect(median(run.commands)).toBeLessThanOrEqual(mostCommands);
      });
    });
  }

  test("never hold the lock at the same time when they hold it for a while", async () => {
    const [withHandover] = modes as readonly [Mode];
    const { entries } = await contend(server, "contention, held", { ...withHandover, share: 10 }, 1);
    expect(entries.length).toBeGreaterThan(10 * tasks * processes);
    expect(overlaps(entries)).toEqual([]);
  });

  test("leave only a fencing counter on the server", async () => {
    await vi.waitFor(async () => {
      const keys = await server.client().keys("*contention*");
      expect(keys.filter((key) => !key.startsWith("holdfast:fence:"))).toEqual([]);
    });
  });
});

onRedis("the order of service", () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server.stop();
  });

  test("is that of arrival, between processes and within each", async () => {
    const arrivals = arrivalsOf(3);
    const served = await serve(server, "order with hand-over", {}, arrivals);
    const firsts = served.filter((who) => who.endsWith(".0"));
    expect(firsts).toEqual(["a.0", "b.0", "c.0", "d.0"]);
    for (const process of ["a", "b", "c", "d"]) {
      const own = served.filter((who) => who.startsWith(process));
      expect(own).toEqual(arrivals.filter((who) => who.startsWith(process)));
    }
  });

  test("is strictly that of arrival without hand-over", async () => {
    const arrivals = arrivalsOf(tasks);
    expect(await serve(server, "strict order", { handover: false }, arrivals)).toEqual(arrivals);
  });
});
/** All tasks of all processes contend for one key, until each had its share while all of them ran. */
async function contend(
  server: RedisServer,
  key: string,
  { options, share, windowBytes }: Mode,
  holdMs = 0,
): Promise<Run> {
  const workers = await startWorkers(processes, server.port, options);
  using recording = new Recording();
  try {
    const done = workers.map((worker) => worker.event("done"));
    for (const each of done) {
      each.catch(() => undefined); // awaited below, unless a worker fails before
    }
    const acquire = { waitMs: 60_000 };
    await Promise.all(
      workers.map((worker) =>
        worker.request("contend", { key, tasks, record: recording.path, acquire, holdMs }, "counted"),
      ),
    );
    const from = recording.end; // all tasks run
    const wanted = share + 1; // one more may have begun before
    const counted = Promise.all(workers.map((worker) => worker.request("count", { wanted }, "counted")));
    const commands = holdMs === 0 ? await commandsPerAcquisition(server, recording, windowBytes) : [];
    await counted;
    const to = recording.end;
    for (const worker of workers) {
      worker.order("stop", {});
    }
    const ends = await Promise.all(done);
    return {
      entries: recording.read(),
      shares: countOf(recording.turns(from, to)),
      commands,
      waits: ends.flatMap(({ waits }) => waits),
      losses: ends.reduce((sum, { losses }) => sum + losses, 0),
    };
  } finally {
    await endAll(workers);
  }
}

/**
 * The commands that the server has executed, with those inside scripts, for each acquisition that the holders
 * have recorded.
 */
async function commandsPerAcquisition(
  server: RedisServer,
  recording: Recording,
  windowBytes: number,
): Promise<number[]> {
  const probe = server.client();
  const ratios: number[] = [];
  let before = await readings(probe, recording);
  while (ratios.length < windows) {
    const size = recording.end;
    await vi.waitUntil(() => recording.end > size + windowBytes, { timeout: limitMs(100_000), interval: 10 });
    const after = await readings(probe, recording);
    ratios.push((after.commands - before.commands) / recording.turns(before.at, after.at).length);
    before = after;
  }
  return ratios;
}

async function readings(probe: Redis, recording: Recording): Promise<{ at: number; commands: number }> {
  const start = recording.end;
  const stats = await probe.info("commandstats");
  const at = Math.round((start + recording.end) / 2);
  const calls = Array.from(stats.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm), ([, count]) => Number(count));
  return { at, commands: calls.reduce((sum, count) => sum + count, 0) };
}

/**
 * Callers arrive one after the other while the lock is held, which is then released.
 * @returns the order in which they were served
 */
async function serve(
  server: RedisServer,
  key: string,
  options: LocksOptions,
  arrivals: readonly string[],
): Promise<string[]> {
  const workers = await startWorkers(processes, server.port, options);
  using recording = new Recording();
  const locks = createLocks(redis(server.client()), options);
  try {
    const lease = await locks.acquire(key);
    const turns: Promise<unknown>[] = [];
    for (const who of arrivals) {
      const worker = workers.find(({ name }) => who.startsWith(name)) as Worker;
      const turn = worker.turn(who);
      turn.catch(() => undefined); // awaited below
      turns.push(turn);
      await worker.request("takeTurn", { key, record: recording.path, who }, "queued");
    }
    await lease.release();
    await Promise.all(turns);
    return recording.turns();
  } finally {
    await locks.close();
    await endAll(workers);
  }
}

/** The order of arrival: the first caller of each process, then the second of each, and so on. */
function arrivalsOf(each: number): string[] {
  return Array.from({ length: each }, (_, task) =>
    ["a", "b", "c", "d"].map((name) => `${name}.${task}`),
  ).flat();
}
function overlaps(entries: readonly RecordEntry[]): string[] {
  const wrong: string[] = [];
  let holder: RecordEntry | undefined;
  for (const entry of entries) {
    const isRight =
      entry.what === "begin"
        ? holder === undefined
        : holder?.who === entry.who && holder.fencingToken === entry.fencingToken;
    if (!isRight) {
      wrong.push(
        `${entry.what} ${entry.who} ${entry.fencingToken} while ${holder?.who ?? "no caller"} held it`,
      );
    }
    holder = entry.what === "begin" ? entry : undefined;
  }
  return wrong;
}

function countOf(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

async function endAll(workers: readonly Worker[]): Promise<void> {
  await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
}
