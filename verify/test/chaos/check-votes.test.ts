import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import type { ClientRecord, CoordinatorRecord, CountedVote } from "../../chaos/judge/history.ts";
import { judge } from "../../chaos/judge/judge.ts";
import {
  endOfRun,
  granted,
  planFor,
  historyFixture,
  opened,
  released,
  type PlantedHistory,
} from "./planted-history.ts";

// Histories with votes that must not be counted, and beside each a similar history with a vote that may be counted.

const { folder, plant, violated } = historyFixture();

const { nodes, maxTtlMs, storms } = planFor("redlock");
const forgetful = nodes.findIndex(({ durable }) => !durable);
const durable = nodes.findIndex((node) => node.durable);
const step = storms
  .flatMap(({ faults }) => faults)
  .find((fault) => fault.kind === "step a clock" && !nodes[fault.nodes[0] as number]?.durable);
/** The first run started long before the history. */
const [first, second] = ["00000001", "00000002"];
const startedAt = 50_000;
const guardMs = maxTtlMs + 3_000;
/** Every other client trusts durable servers. */
const [distrusting, trusting] = ["client-0.1", "client-1.1"];
/** An uptime is in whole seconds, and clocks drift by 1 %. */
const minUptimeMs = startedAt + Math.ceil((guardMs - 1_000) * 0.99);
const minForObserver = startedAt + Math.ceil(guardMs * 0.99);

describe("the vote of a server that was restarted empty", () => {
  test("does not count before its uptime reaches the largest TTL and 3 s", async () => {
    expect(await violatedBy(leaseAt(minUptimeMs - 1, second))).toEqual(["votes"]);
  });

  test("counts from that uptime on", async () => {
    expect(await violatedBy(leaseAt(minUptimeMs, second))).toEqual([]);
  });

  test("does not count until later in a process that noticed the restart, because the process had counted an earlier vote", async () => {
    expect(
      await violatedBy([...leaseAt(40_000, first, 1), ...leaseAt(minForObserver - 1, second, 2)]),
    ).toEqual(["votes"]);
  });

  test("counts in that process after the whole quarantine", async () => {
    expect(await violatedBy([...leaseAt(40_000, first, 1), ...leaseAt(minForObserver, second, 2)])).toEqual(
      [],
    );
  });

  test("does not count in an extension either", async () => {
    const extended: ClientRecord = {
      e: "extended",
      at: minUptimeMs - 1,
      key: "hot",
      votes: [voteOf(forgetful, second)],
    };
    expect(await violatedBy([extended])).toEqual(["votes"]);
  });

  test.each([
    { counts: "counts at once in a process that trusts durable servers", process: trusting, violations: [] },
    { counts: "does not count in another process", process: distrusting },
    { counts: "does not count if the server became durable by the restart", before: false },
    { counts: "does not count if the server is no longer durable", after: false },
    { counts: "does not count in a process that was opened after it", openedAt: startedAt + 60 },
  ])("of a durable server $counts", async ({ violations = ["votes"], ...course }) => {
    const records = leaseAt(startedAt + 100, second, 1, durable);
    expect(await violatedBy(records, durable, [], { before: true, after: true, ...course })).toEqual(
      violations,
    );
  });

  test("is not judged in a process that knows only the uptime, if the server's clock was set after the restart", async () => {
    const node = step?.nodes[0] as number;
    const records = leaseAt(startedAt + 2_000, second, 2, node);
    expect(await violatedBy(records, node, clockSetAt(startedAt + 1_000))).toEqual([]);
  });

  test("is judged if the clock was set before the restart", async () => {
    const node = step?.nodes[0] as number;
    const records = leaseAt(startedAt + 2_000, second, 2, node);
    expect(await violatedBy(records, node, clockSetAt(startedAt - 9_000))).toEqual(["votes"]);
  });

  test("is judged in a process that noticed the restart, even if the clock was set", async () => {
    const node = step?.nodes[0] as number;
    const records = [...leaseAt(40_000, first, 1, node), ...leaseAt(startedAt + 2_000, second, 2, node)];
    expect(await violatedBy(records, node, clockSetAt(startedAt + 1_000))).toEqual(["votes"]);
  });
});

describe("the vote of a run that has ended", () => {
  test("counts if it was in transit when the run ended", async () => {
    expect(await violatedBy(leaseAt(startedAt + 100, first, 1, forgetful, startedAt - 210))).toEqual([]);
  });

  test.each([
    ["without durability", forgetful],
    ["with durability", durable],
  ])(
    "does not count for a grant that was requested after the end of the run, on a server %s",
    async (_, node) => {
      const records = leaseAt(startedAt + 100, first, 1, node, startedAt - 150);
      expect(await violatedBy(records, node)).toEqual(["votes"]);
    },
  );
});

test("the vote of a run that never existed is a violation", async () => {
  expect(await violatedBy(leaseAt(60_000, "0000000f"))).toEqual(["votes"]);
});

test("the report lists the votes of both holders", async () => {
  await plant({
    engine: "redlock",
    clients: {
      "client-0.1": [
        ...grantAt(49_000, first, 1, forgetful),
        { e: "extended", at: 49_500, key: "hot", votes: [voteOf(durable, first)] },
        { e: "valid", at: 49_501, requestId: 1, validUntil: 60_000 },
        ...released(1, 59_000),
      ],
      "client-1.2": [...grantAt(58_000, second, 2, forgetful), ...released(2, 58_100)],
    },
    coordinator: coordinatorRecords([
      ...restartOf(forgetful),
      { e: "server", at: 0, node: durable, state: "up", run: first, durable: true },
    ]),
  });
  const { violations } = await judge(folder());
  expect(violations.map(({ rule }) => rule)).toEqual(["exclusion"]);
  const report = await readFile(join(folder(), "report.md"), "utf8");
  expect(report).toContain(
    `  - client-1.2#2 was granted at 58000.000 ms by server ${forgetful} (run ${second} since 50000 ms, by reply, 900 ms left)\n` +
      `  - client-0.1#1 was granted at 49000.000 ms by server ${forgetful} (run ${first} since 0 ms until 49800 ms, by reply, 900 ms left)\n` +
      `  - client-0.1#1 was last extended at 49500.000 ms by server ${durable} (durable, run ${first} since 0 ms, by reply, 900 ms left)`,
  );
});

/** The violations in a history of one process, with one server that was restarted. */
async function violatedBy(
  records: readonly ClientRecord[],
  node: number = forgetful,
  faults: readonly CoordinatorRecord[] = [],
  { process = trusting, openedAt = 0, before = false, after = false } = {},
): Promise<string[]> {
  const planted: PlantedHistory = {
    engine: "redlock",
    clients: { [process]: [{ ...opened, at: openedAt } as ClientRecord, ...records] },
    coordinator: coordinatorRecords([...restartOf(node, before, after), ...faults]),
  };
  return violated(planted);
}

function coordinatorRecords(records: readonly CoordinatorRecord[]): CoordinatorRecord[] {
  return [...records, endOfRun];
}

/** The server is durable or not before the restart, and after it. */
function restartOf(node: number, before = false, after = false): CoordinatorRecord[] {
  return [
    { e: "server", at: 0, node, state: "up", run: first, durable: before },
    { e: "server", at: startedAt - 200, node, state: "killed", run: first, durable: before },
    { e: "server", at: startedAt, node, state: "starting", run: first, durable: after },
    { e: "server", at: startedAt + 50, node, state: "up", run: second, durable: after },
  ];
}

/** A step of a plan sets the clock, and that fault lasts until the end of the run. */
function clockSetAt(at: number): CoordinatorRecord[] {
  return [{ e: "fault", at, faultId: step?.faultId ?? -1, kind: "step a clock", target: "" }];
}

/** A lease that is released soon after its grant. */
function leaseAt(
  at: number,
  run: string,
  requestId = 1,
  node?: number,
  requestedAt?: number,
): ClientRecord[] {
  return [...grantAt(at, run, requestId, node, requestedAt), ...released(requestId, at + 10)];
}

/** A lease with a record of its votes. */
function grantAt(
  at: number,
  run: string,
  requestId: number,
  node: number = forgetful,
  requestedAt: number = at - 1,
): ClientRecord[] {
  const [requested, lease] = granted(requestId, at, at, { requestedAt });
  const votes = [voteOf(node, run)];
  return [
    requested as ClientRecord,
    { e: "vote", at, key: "hot", token: String(at), rounds: 1, votes },
    lease as ClientRecord,
  ];
}

function voteOf(node: number, run: string): CountedVote {
  return { node, run, via: "reply", remainingMs: 900 };
}
