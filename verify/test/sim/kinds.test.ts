import type { Driver } from "holdfast";
import { expect, test } from "vitest";

import { Findings, type CheckName } from "../../sim/judge/findings.ts";
import { Holdings, type WatchedLease } from "../../sim/judge/holdings.ts";
import { Limits } from "../../sim/judge/limits.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { kinds } from "../../sim/plan/schedule.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import type { WaitingRequest } from "../../sim/judge/waiting-request.ts";
import { wallStart } from "../../sim/run/virtual-clock.ts";
import { runSchedule } from "../../sim/run/world.ts";
import { altered, defects, latching, ofNumberOne } from "./defects.ts";

type Latches = NonNullable<Driver["latches"]>;

/** Drivers that go wrong with kinds beside the mutex, where that shows, and by what. */
const kindDefects: readonly (readonly [what: string, only: string, CheckName, (driver: Driver) => Driver])[] =
  [
    [
      "writers ask as readers",
      "read-write,calm",
      "exclusion",
      requesting({ kind: "read-write", mode: "read" }),
    ],
    ["all ask for one permit", "semaphore,calm", "exclusion", requesting({ kind: "semaphore", permits: 1 })],
    ["readers' numbers do not rise", "read-write,calm", "fencing", ofNumberOne],
    ["permits' numbers do not rise", "semaphore,calm", "fencing", ofNumberOne],
    ["who comes is first to read or write", "read-write,calm", "order", defects.order()],
    ["who comes is first to have permits", "semaphore,calm", "order", defects.order()],
    ["permits are not given back", "semaphore,server,calm", "progress", defects.progress()],
    [
      "a downgrade is not told to the engine",
      "read-write,calm",
      "progress",
      (driver) => altered(driver, { downgrade: () => Promise.resolve(true) }),
    ],
    ["leaders do not hear of their end", "election,storm", "loss", defects.loss()],
    [
      "a leader's release is not told to the engine",
      "election,process-death",
      "progress",
      defects.progress(),
    ],
    ["a named attempt counts at each call", "latch,calm", "count", defects.count()],
    [
      "a count in memory is answered, and not carried out",
      "latch,memory",
      "count",
      latching(() => ({ countDown: async ({ count }) => count - 1 })),
    ],
    ["who knew a latch counts the next one down", "latch,storm", "latch", defects.latch()],
    [
      "who waits is let go at once",
      "latch,calm",
      "latch",
      latching(() => ({ wait: () => ({ result: Promise.resolve(0), cancel: () => undefined }) })),
    ],
    ["who waits is told late", "latch,calm", "progress", latching(reportedLate)],
    ["who gives up still stands there", "latch,calm", "residue", latching(neverDequeued)],
  ];

function reportedLate({ wait }: Latches, { clock }: Driver): Partial<Latches> {
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

/** Its caller hears that it is over, and the engine does not. */
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

/** Whatever is asked for, this is told to the engine. */
function requesting(reported: { kind: "read-write"; mode: "read" } | { kind: "semaphore"; permits: number }) {
  return (driver: Driver): Driver =>
    altered(driver, {
      acquire: ({ lockMode, ...request }) =>
        driver.acquire({
          ...request,
          lockMode: lockMode && ({ ...lockMode, ...reported } as typeof lockMode),
        }),
    });
}

test.each(kindDefects)(
  "%s: it is found in schedules of %s by the check of %s",
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

test.each(kinds)("schedules of the kind %s are played, and end well", async (kind) => {
  let grants = 0;
  const seeds = seedsFrom(10_001, kind);
  for (let i = 0; i < 25; i += 1) {
    const seed = seeds.next().value as number;
    const report = await runSchedule(planSchedule(seed));
    expect([seed, report.findings]).toEqual([seed, []]);
    grants += report.grants;
  }
  expect(grants).toBeGreaterThan(100);
});

test("what is handed on in a process has the next number of its grant, whatever others were granted meanwhile", () => {
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
  ["that is not the next one", 0, 12, true],
  ["while its last owner has it", 0, 11, false],
  ["that another has had", 0, 100, true],
])("a number %s is not one that was handed on", (_, client, number, isReleased) => {
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
  const judges = { dataLostAt: () => -Infinity, isQuorum, numbersLostAt };
  return { holdings: new Holdings(findings, limits, judges), findings };
}

function requestOf(client: number, weight: number): WaitingRequest {
  return {
    client,
    keys: ["k"],
    weight,
    isShared: true,
    ttlMs: 1_000,
    since: (now += 1),
    arrivedFrom: now,
    arrivedTo: now,
    judgedSince: now,
    serial: now,
    isInLocalQueue: false,
    usesLocalQueue: false,
    mayWaitInMemory: false,
    headSince: Infinity,
    isQueued: true,
    isDequeued: false,
    until: Infinity,
    wasGranted: false,
    isSettled: false,
  };
}

function lease(fencingToken: number, leftMs = 100): WatchedLease {
  return {
    key: "k",
    fencingToken: BigInt(fencingToken),
    signal: AbortSignal.abort(),
    remainingMs: () => leftMs,
  };
}

test("permits beyond the limit are found, and those beyond a lower one only of who came after it", () => {
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

test("readers who asked at the same time may have one number on a quorum, and nowhere else", () => {
  for (const isQuorum of [true, false]) {
    const { holdings: watched, findings } = holdings(new Limits(2 ** 31), isQuorum);
    const [one, other] = [requestOf(1, 1), requestOf(2, 1)];
    watched.granted(one, lease(5));
    watched.granted(other, lease(5));
    expect(findings.list.map(({ check }) => check)).toEqual(isQuorum ? [] : ["fencing"]);
  }
});

test("a number below one that had been told is found, as is that of a writer after a reader's", () => {
  const { holdings: watched, findings } = holdings(new Limits(2 ** 31), true);
  const [writer, early] = [requestOf(1, 2 ** 31), requestOf(2, 1)];
  watched.granted(requestOf(3, 1), lease(7, 0));
  watched.granted(early, lease(6, 0)); // asked before 7 was told
  expect(findings.list).toEqual([]);
  now += 1;
  watched.granted(writer, lease(5, 0));
  expect(findings.list.map(({ check }) => check)).toEqual(["fencing"]);
  now += 1;
  watched.granted(requestOf(4, 1), lease(6, 0));
  expect(findings.list.map(({ check }) => check)).toEqual(["fencing", "fencing"]);
});

test("a number may be given again only where a node lost it, and while it is ahead of the time", () => {
  const lostAt = (now += 1);
  for (const [toldAt, aheadMs, found] of [
    [lostAt - 5, 1_000, []],
    [lostAt - 5, 1, ["fencing"]],
    [lostAt + 1, 1_000, ["fencing"]],
  ] as const) {
    now = toldAt;
    const { holdings: watched, findings } = holdings(new Limits(2 ** 31), true, [lostAt]);
    const number = (wallStart + now + aheadMs) * 1_000;
    watched.granted(requestOf(1, 2 ** 31), lease(number, 0));
    now = lostAt + 10;
    watched.granted(requestOf(2, 2 ** 31), lease(number - 1, 0));
    expect(findings.list.map(({ check }) => check)).toEqual(found);
  }
});

test("who is let into what it gave back is found, and not who comes in while another is in", () => {
  const { holdings: watched, findings } = holdings(new Limits(2 ** 31));
  const nest = { by: "nest", name: "session" } as const;
  const [first, second] = [lease(1), lease(1)];
  const enter = (): WaitingRequest => ({ ...requestOf(0, 2 ** 31), isShared: false });
  watched.granted(enter(), first, nest);
  watched.granted(enter(), second, nest);
  watched.released(first);
  expect(watched.used).toBeGreaterThan(0);
  watched.granted(enter(), first, nest);
  watched.released(first);
  watched.released(second);
  expect(watched.used).toBe(0);
  now += 1;
  expect(findings.list).toEqual([]);
  watched.granted(enter(), lease(1), nest);
  expect(findings.list.map(({ check }) => check)).toEqual(["reentry"]);
});
