import { Recording } from "../../support/workers.ts";
import { startSentinels, waitUntil, type Sentinels } from "@holdfast/test-kit";
import { afterEach, beforeEach, expect, test } from "vitest";

import { FailoverWorker, readHolds, type HoldRecord } from "../../support/failover-workers.ts";
import { onRedis } from "../../support/servers.ts";

const libraries = ["ioredis", "ioredis5", "redis", "redis5"];
const keys = ["lab:a", "lab:b"];

onRedis("The primary is killed under the load of several processes", () => {
  let lab: Sentinels;
  let workers: FailoverWorker[];
  let record: Recording;

  beforeEach(async () => {
    record = new Recording();
    lab = await startSentinels();
    workers = await Promise.all(libraries.map((library) => FailoverWorker.start(library, lab, record.path)));
  });

  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await lab.stop();
    record[Symbol.dispose]();
  });

  test("tokens rise, no caller hangs, and only a grant that died with the primary is granted twice", async () => {
    for (const worker of workers) {
      worker.order("contend", { keys, tasks: 3 });
    }
    await turnsOfAll(3);
    const former = await lab.primary();
    const killedAt = performance.timeOrigin + performance.now();
    former.kill("SIGKILL");
    const primary = await lab.replaced(former);
    const replacedAt = performance.timeOrigin + performance.now();
    await turnsOfAll(3);
    const done = workers.map((worker) => worker.event("done"));
    for (const worker of workers) {
      worker.order("stop", {});
    }
    await Promise.all(done);

    const holds = readHolds(record.path);
    const twice = keys.flatMap((key) => overlaps(holds.filter((held) => held.key === key)));
    printCost(holds, { twice, killedAt, replacedAt });
    for (const key of keys) {
      const tokens = holds.filter((held) => held.key === key).map(({ token }) => token);
      expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
      expect(new Set(tokens).size).toBe(tokens.length);
    }
    // A failover may lose only a grant of the former primary that the new one does not know.
    expect(twice.filter(([first, second]) => first.begun > killedAt || second.begun < killedAt)).toEqual([]);

    await Promise.all(workers.map((worker) => worker.close()));
    const probe = primary.client();
    await waitUntil(async () => (await probe.keys("lock:*")).length === 0, "no lock is left");
    await waitUntil(async () => (await probe.keys("holdfast:queue:*")).length === 0, "no queue is left");
  });

  async function turnsOfAll(wanted: number): Promise<void> {
    const counted = workers.map((worker) => worker.event("counted"));
    for (const worker of workers) {
      worker.order("count", { wanted });
    }
    await Promise.all(counted);
  }
});

type Pair = readonly [first: HoldRecord, second: HoldRecord];

/** Each pair of holds of one key of which the second began before the first ended. */
function overlaps(holds: readonly HoldRecord[]): Pair[] {
  return holds.flatMap((first, index) =>
    holds
      .slice(index + 1)
      .filter((second) => second.begun < first.ended)
      .map((second): Pair => [first, second]),
  );
}

/** For the reader of the test's output: the cost of the failover. */
function printCost(
  holds: readonly HoldRecord[],
  { twice, killedAt, replacedAt }: { twice: readonly Pair[]; killedAt: number; replacedAt: number },
): void {
  const before = holds.filter(({ begun }) => begun < killedAt);
  const after = holds.filter(({ begun }) => begun > killedAt);
  const gaps = keys.map((key) => {
    const begins = holds.filter((held) => held.key === key).map(({ begun }) => begun);
    return Math.round(Math.max(...begins.slice(1).map((begun, index) => begun - (begins[index] ?? begun))));
  });
  const lost = holds.filter(({ end }) => end === "lost").length;
  console.info(
    `failover: another primary after ${Math.round(replacedAt - killedAt)} ms; no grant for ${gaps.join(" and ")} ms ` +
      `(of ${keys.join(" and ")}), ${before.length} holds before and ${after.length} after, ${lost} reported lost, ` +
      `${twice.length} given twice`,
  );
}
