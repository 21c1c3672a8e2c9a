import type { Driver } from "holdfast";
import { expect, test } from "vitest";

import { Findings, type CheckName } from "../../sim/judge/findings.ts";
import { Holdings } from "../../sim/judge/holdings.ts";
import { Limits } from "../../sim/judge/limits.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import type { WaitingRequest } from "../../sim/judge/waiting-request.ts";
import type { WatchedLease } from "../../sim/judge/leases.ts";
import { wallStart } from "../../sim/run/virtual-clock.ts";
import { runSchedule } from "../../sim/run/world.ts";
import { requestSince } from "./history-fixture.ts";
import { altered, defects, withLatches, withConstantNumber } from "./defects.ts";

type Latches = NonNullable<Driver["latches"]>;

/** Drivers with a defect in one kind of lock, the schedules in which the defect shows, and the check that finds the defect. */
const kindDefects: readonly (readonly [what: string, only: string, CheckName, (driver: Driver) => Driver])[] =
  [
    [
      "writers are sent as readers",
      "read-write,calm",
      "exclusion",
      requesting({ kind: "read-write", mode: "read" }),
    ],
    [
      "every request is sent for one permit",
      "semaphore,calm",
      "exclusion",
      requesting({ kind: "semaphore", permits: 1 }),
    ],
    ["readers' numbers do not rise", "read-write,calm", "fencing", withConstantNumber],
    ["permits' numbers do not rise", "semaphore,calm", "fencing", withConstantNumber],
    ["the latest reader or writer is first in the queue", "read-write,calm", "order", defects.order()],
    ["the latest request for permits is first in the queue", "semaphore,calm", "order", defects.order()],
    ["a release does not return permits", "semaphore,server,calm", "progress", defects.progress()],
    [
      "a downgrade is not sent to the engine",
      "read-write,calm",
      "progress",
      (driver) => altered(driver, { downgrade: () => Promise.resolve(true) }),
    ],
    ["leaders learn late of a loss", "election,storm", "loss", defects.loss()],
    [
      "a leader's release is not sent to the engine",
      "election,process-death",
      "progress",
      defects.progress(),
    ],
    ["an attempt counts at each call", "latch,calm", "count", defects.count()],
    [
      "a countdown in memory returns without an effect",
      "latch,memory",
      "count",
      withLatches(() => ({ countDown: async ({ count }) => count - 1 })),
    ],
    ["a caller of an expired latch counts the next latch down", "latch,storm", "latch", defects.latch()],
    [
      "a wait for a latch returns at once",
      "latch,calm",
      "latch",
      withLatches(() => ({ wait: () => ({ result: Promise.resolve(0), cancel: () => undefined }) })),
    ],
    ["a wait for a latch returns late", "latch,calm", "progress", withLatches(waitReturnsLate)],
    ["an abandoned wait keeps its queue entry", "latch,calm", "residue", withLatches(neverDequeued)],
  ];

function waitReturnsLate({ wait }: Latches, { clock }: Driver): Partial<Latches> {
  const later = (): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimer(resolve, 1_000);
    });
  return {
    wait: (latch, deadline) => {
      const { result, cancel } = wait(latch, deadline);
      const reported = result.then(
        async (remaining) => {
          await later();
          return remaining;
        },
        async (error: unknown) => {
          await later();
          throw error;
        },
      );
      return { result: reported, cancel };
    },
  };
}

/** The caller gets the end of its wait, but the engine does not. */
function neverDequeued({ wait }: Latches): Partial<Latches> {
  return {
    wait: (latch, deadline) => {
      const { result } = wait(latch, deadline === null ? null : Infinity);
      let cancel: (reason: unknown) => void = () => undefined;
      const remaining = new Promise<number>((resolve, reject) => {
        cancel = reject;
        result.then(resolve, reject);
      });
      return { result: remaining, cancel };
    },
  };
}

/** Sends this mode to the engine, whatever the caller requests. */
function requesting(sent: { kind: "read-write"; mode: "read" } | { kind: "semaphore"; permits: number }) {
  return (driver: Driver): Driver =>
    altered(driver, {
      acquire: ({ lockMode, ...request }) =>
        driver.acquire({
          ...request,
          lockMode: lockMode && ({ ...lockMode, ...sent } as typeof lockMode),
        }),
    });
}

test.each(kindDefects)(
  "%s: schedules of %s find the defect by the check %s",
  async (_, only, check, wrapDriver) => {
    const found: string[] = [];
    for (const seed of seedsFrom(1, only)) {
      const { findings } = await runSchedule(planSchedule(seed), { wrapDriver });
      found.push(...findings.map((finding) => finding.check));
      if (found.includes(check) || seed > 4_000) {
        break;
      }
    }
    expect(found).toContain(check);
  },
);

test("a handed-over lease has the next number of its grant, also after grants to other clients", () => {
  const { holdings: watched, findings } = holdings(new Limits(2));
  const first = lease(10);
  watched.granted(requestOf(0, 1), first);
  watched.granted(requestOf(1, 1), lease(100));
  watched.released(first);
  const second = lease(11);
  expect(watched.granted(requestOf(0, 1), second)).toBe(1);
  watched.released(second);
  expect(watched.granted(requestOf(0, 1), lease(12))).toBe(2);
  expect(findings.list).toEqual([]);
});

test.each([
  ["of another client", 1, 11, true],
  ["that is not the next number", 0, 12, true],
  ["of a grant that is still held", 0, 11, false],
  ["that another grant has had", 0, 100, true],
])("the judge does not take a number %s for a hand-over", (_, client, number, isReleased) => {
  const { holdings: watched, findings } = holdings(new Limits(3));
  const first = lease(10);
  watched.granted(requestOf(0, 1), first);
  watched.granted(requestOf(1, 1), lease(100));
  if (isReleased) {
    watched.released(first);
  }
  watched.granted(requestOf(client, 1), lease(number));
  expect(findings.list.map(({ check }) => check)).toEqual(["fencing"]);
});

let now = 0;

function holdings(
  limits: Limits,
  isQuorum = false,
  numbersLostAt: readonly number[] = [],
): { holdings: Holdings; findings: Findings } {
  const findings = new Findings(() => now);
  const context = { dataLostAt: () => -Infinity, isQuorum, numbersLostAt };
  return { holdings: new Holdings(findings, limits, context), findings };
}

function requestOf(client: number, weight: number): WaitingRequest {
  return requestSince((now += 1), { client, weight, isShared: true, serial: now });
}

function lease(fencingToken: number, leftMs = 100): WatchedLease {
  return {
    key: "k",
    fencingToken: BigInt(fencingToken),
    signal: AbortSignal.abort(),
    remainingMs: () => leftMs,
  };
}

test("the judge finds permits above the limit, and after a lower limit only those of later grants", () => {
  const limits = new Limits(3);
  const watched = holdings(limits);
  for (const number of [1, 2, 3]) {
    watched.holdings.granted(requestOf(number, 1), lease(number));
    now += 1;
  }
  limits.requested(1);
  limits.applied(now, 1);
  watched.holdings.check();
  expect(watched.findings.list).toEqual([]);
  now += 1;
  watched.holdings.granted(requestOf(4, 1), lease(4));
  watched.holdings.check();
  expect(watched.findings.list.map(({ check }) => check)).toEqual(["exclusion"]);
});

test("only on a quorum may readers with requests at the same time have the same number", () => {
  for (const isQuorum of [true, false]) {
    const { holdings: watched, findings } = holdings(new Limits(2 ** 31), isQuorum);
    const [one, other] = [requestOf(1, 1), requestOf(2, 1)];
    watched.granted(one, lease(5));
    watched.granted(other, lease(5));
    expect(findings.list.map(({ check }) => check)).toEqual(isQuorum ? [] : ["fencing"]);
  }
});

test("the judge finds a number below an earlier reported number, and a writer's number below a reader's", () => {
  const { holdings: watched, findings } = holdings(new Limits(2 ** 31), true);
  const [writer, early] = [requestOf(1, 2 ** 31), requestOf(2, 1)];
  watched.granted(requestOf(3, 1), lease(7, 0));
  watched.granted(early, lease(6, 0)); // requested before 7 was reported
  expect(findings.list).toEqual([]);
  now += 1;
  watched.granted(writer, lease(5, 0));
  expect(findings.list.map(({ check }) => check)).toEqual(["fencing"]);
  now += 1;
  watched.granted(requestOf(4, 1), lease(6, 0));
  expect(findings.list.map(({ check }) => check)).toEqual(["fencing", "fencing"]);
});

test("a number may be issued again only if a node has lost it while it is ahead of the time", () => {
  const lostAt = (now += 1);
  for (const [reportedAt, aheadMs, found] of [
    [lostAt - 5, 1_000, []],
    [lostAt - 5, 1, ["fencing"]],
    [lostAt + 1, 1_000, ["fencing"]],
  ] as const) {
    now = reportedAt;
    const { holdings: watched, findings } = holdings(new Limits(2 ** 31), true, [lostAt]);
    const number = (wallStart + now + aheadMs) * 1_000;
    watched.granted(requestOf(1, 2 ** 31), lease(number, 0));
    now = lostAt + 10;
    watched.granted(requestOf(2, 2 ** 31), lease(number - 1, 0));
    expect(findings.list.map(({ check }) => check)).toEqual(found);
  }
});

test("the judge finds an entry into a released hold, but no entry into a present hold", () => {
  const { holdings: watched, findings } = holdings(new Limits(2 ** 31));
  const session = { name: "session" };
  const [first, second] = [lease(1), lease(1)];
  const enter = (): WaitingRequest => ({ ...requestOf(0, 2 ** 31), isShared: false });
  watched.granted(enter(), first, session);
  watched.granted(enter(), second, session);
  watched.released(first);
  expect(watched.used).toBeGreaterThan(0);
  watched.granted(enter(), first, session);
  watched.released(first);
  watched.released(second);
  expect(watched.used).toBe(0);
  now += 1;
  expect(findings.list).toEqual([]);
  watched.granted(enter(), lease(1), session);
  expect(findings.list.map(({ check }) => check)).toEqual(["reentry"]);
});
