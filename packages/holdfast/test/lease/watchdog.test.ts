import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { expect, test } from "vitest";

import { instantNow } from "../../src/runtime/clock.ts";
import type { ExtendResult } from "../../src/driver.ts";
import { validFrom } from "../../src/validity.ts";
import {
  clock,
  endMs,
  failing,
  firstRenewalMs,
  hanging,
  lossMs,
  onWatchdog,
  renewing,
  renewingFor,
  ttlMs,
  watchdog,
  watched,
} from "../support/watchdog-fixture.ts";

onWatchdog();

test("a lease is renewed when a third of its TTL has passed, again and again", async () => {
  const target = watched(renewing);
  await clock.advance(3_500);
  expect(target.renewals).toEqual([1, 2, 3].map((times) => times * firstRenewalMs));
  expect(target.confirmations).toBe(3);
  expect(target.validity.until).toBe(3 * firstRenewalMs + endMs);
  expect(target.losses).toEqual([]);
});

test("renewed: validity counts from when the renewal was sent, not from its answer", async () => {
  const target = watched(
    () =>
      new Promise((resolve) => {
        const validity = validFrom(instantNow(clock), ttlMs);
        clock.setTimer(() => {
          resolve({ outcome: "extended", validity });
        }, 40);
      }),
  );
  await clock.advance(firstRenewalMs + 40);
  expect(target.validity.until).toBe(firstRenewalMs + endMs);
});

test("lost: the lease ends at once with the engine's reason, and no further request is sent", async () => {
  const target = watched(async () => ({ outcome: "lost", reason: "stolen" }));
  await clock.advance(20_000);
  expect(target.losses).toEqual([[firstRenewalMs, "stolen", undefined]]);
  expect(target.renewals).toHaveLength(1);
  expect(clock.timers()).toBe(0);
});

test("unknown: the renewal is retried with growing backoff, and one success restores the schedule", async () => {
  const target = watched((attempt) => (attempt <= 3 ? failing(attempt) : renewing()));
  await clock.advance(firstRenewalMs + 1_800);
  const [first = 0, second = 0, third = 0, fourth = 0, fifth] = target.renewals;
  expect(first).toBe(firstRenewalMs);
  const gaps = [second - first, third - second, fourth - third];
  for (const [index, gap] of gaps.entries()) {
    const backoffMs = 100 * 2 ** index;
    expect(gap).toBeGreaterThanOrEqual(backoffMs / 1.5);
    expect(gap).toBeLessThanOrEqual(backoffMs);
  }
  expect(fifth).toBeCloseTo(fourth + firstRenewalMs);
  expect(target.losses).toEqual([]);
});

test.each([
  { outcome: "extended", reason: "expired" },
  { outcome: "unknown", reason: "engine-unreachable" },
] as const)("a reply after the end declares the loss at once, before any timer: $outcome", async (reply) => {
  let answer = (): void => undefined;
  const target = watched(
    () =>
      new Promise((resolve) => {
        const validity = validFrom(instantNow(clock), ttlMs);
        answer = () => {
          resolve(
            reply.outcome === "extended"
              ? { outcome: "extended", validity }
              : { outcome: "unknown", error: 1 },
          );
        };
      }),
  );
  await clock.advance(firstRenewalMs);
  clock.block(10_000);
  answer();
  for (let turn = 0; turn < 10; turn += 1) {
    await Promise.resolve();
  }
  expect(target.losses.map(([at, reason]) => [at, reason])).toEqual([
    [firstRenewalMs + 10_000, reply.reason],
  ]);
  expect(target.confirmations).toBe(0);
});

test("unknown until the end: the lease is lost at its deadline, not before, with the last error as cause", async () => {
  const target = watched(failing);
  await clock.advance(lossMs - 0.5);
  expect(target.losses).toEqual([]);
  await clock.advance(0.5);
  expect(target.renewals.length).toBeGreaterThanOrEqual(5);
  expect(target.losses).toEqual([[lossMs, "engine-unreachable", `error ${target.renewals.length}`]]);
});

test("retries are jittered: leases of one moment do not all retry at one moment", async () => {
  const targets = Array.from({ length: 20 }, () => watched(failing));
  await clock.advance(firstRenewalMs + 100);
  const seconds = targets.map(({ renewals }) => renewals[1]);
  expect(new Set(seconds).size).toBe(20);
});

test("a hanging renewal does not delay the deadline", async () => {
  const target = watched(hanging);
  await clock.advance(10_000);
  expect(target.losses).toEqual([
    [
      lossMs,
      "engine-unreachable",
      expect.objectContaining({ message: "the engine has not replied to the renewal" }),
    ],
  ]);
  expect(clock.timers()).toBe(0);
});

test("a hanging renewal is retried, and the first reply counts", async () => {
  const target = watched((attempt) => (attempt === 1 ? hanging() : renewing()));
  await clock.advance(endMs);
  expect(target.losses).toEqual([]);
  expect(target.confirmations).toBeGreaterThan(0);
});

test("an unanswered renewal is repeated only when another third of the TTL has passed", async () => {
  const target = watched(hanging);
  await clock.advance(endMs);
  expect(target.renewals).toEqual([firstRenewalMs, firstRenewalMs + ttlMs / 3]);
});

test("a reply after the loss does not revive the lease", async () => {
  const answers: ((extension: ExtendResult) => void)[] = [];
  const target = watched(() => new Promise((resolve) => answers.push(resolve)));
  await clock.advance(endMs);
  expect(target.losses).toHaveLength(1);
  for (const answer of answers) {
    answer({ outcome: "extended", validity: validFrom(instantNow(clock), ttlMs) });
  }
  answers[0]?.({ outcome: "lost", reason: "expired" });
  await clock.advance(endMs);
  expect([target.confirmations, target.losses.length, clock.timers()]).toEqual([0, 1, 0]);
});

test("the late reply to an older renewal does not shorten the validity", async () => {
  const answers: (() => void)[] = [];
  const target = watched(
    () =>
      new Promise((resolve) => {
        const validity = validFrom(instantNow(clock), ttlMs);
        answers.push(() => {
          resolve({ outcome: "extended", validity });
        });
      }),
  );
  await clock.advance(firstRenewalMs + ttlMs / 3);
  expect(answers).toHaveLength(2);
  answers[1]?.();
  await clock.advance(0);
  const until = target.validity.until;
  answers[0]?.();
  await clock.advance(0);
  expect(target.validity.until).toBe(until);
});

test("a claim is renewed as soon as its work has lasted for 5 ms", async () => {
  const target = watched(renewing, { isClaim: true });
  await clock.advance(4);
  expect(target.renewals).toEqual([]);
  await clock.advance(1);
  expect(target.renewals).toEqual([5]);
});

test("a lease that ends within 5 ms costs no request", async () => {
  const target = watched(renewing, { isClaim: true });
  watchdog.unwatch(target.watch);
  await clock.advance(1_000);
  expect([target.renewals, clock.timers()]).toEqual([[], 0]);
});

test("a lease with less than 5 ms, for example a late adoption, is renewed before it ends", async () => {
  const target = watched(renewing, { validity: { until: clock.now() + 4, untilWall: clock.wall() + 4 } });
  await clock.advance(5);
  expect([target.confirmations, target.losses]).toEqual([1, []]);
});

test("a lease without renewal ends at its deadline", async () => {
  const target = watched(renewing, { needsRenewal: false });
  await clock.advance(10_000);
  expect([target.renewals, target.losses]).toEqual([[], [[lossMs, "expired", undefined]]]);
});

test("renewal ends at maxHoldMs", async () => {
  const target = watched(renewing, { endsAt: 2_500 });
  await clock.advance(10_000);
  expect(target.losses).toEqual([[2_500, "max-hold", undefined]]);
  expect(target.renewals).toHaveLength(2);
});

test("an unreferenced lease is reported as leaked instead of renewed", async () => {
  const target = watched(renewing);
  target.isKept = false;
  await clock.advance(10_000);
  expect([target.leaks, target.renewals]).toEqual([[firstRenewalMs], []]);
  expect(target.losses).toEqual([[lossMs, "expired", undefined]]);
});

test("a thousand leases have one timer, which does not hold the process", async () => {
  const targets = Array.from({ length: 1_000 }, () => watched(renewing));
  expect([clock.timers(), clock.timers(true)]).toEqual([1, 0]);
  await clock.advance(firstRenewalMs);
  expect(targets.every(({ confirmations }) => confirmations === 1)).toBe(true);
  expect([clock.timers(), clock.timers(true)]).toEqual([1, 0]);
  for (const { watch } of targets) {
    watchdog.unwatch(watch);
  }
  expect(clock.timers()).toBe(0);
});

test("an extension with a reschedule postpones the due renewal", async () => {
  const target = watched(renewing);
  await clock.advance(900);
  Object.assign(target.validity, validFrom(instantNow(clock), ttlMs));
  watchdog.reschedule(target.watch);
  await clock.advance(firstRenewalMs - 1);
  expect(target.renewals).toEqual([]);
  await clock.advance(1);
  expect(target.renewals).toEqual([900 + firstRenewalMs]);
});

test("a shared validity that another holder of the run extended is not renewed again", async () => {
  const target = watched(renewing);
  await clock.advance(900);
  Object.assign(target.validity, validFrom(instantNow(clock), ttlMs));
  await clock.advance(firstRenewalMs - 1);
  expect(target.renewals).toEqual([]);
});

test("a renewal with less than a third of the TTL left is reported as late", async () => {
  const late: unknown[] = [];
  const listen = (message: unknown): void => {
    late.push(message);
  };
  subscribe("holdfast:late-renewal", listen);
  try {
    const target = watched(renewing);
    clock.block(endMs - 900);
    await clock.advance(0);
    expect(target.confirmations).toBe(1);
    expect(late).toEqual([{ ...target.facts(), lateMs: endMs - 900 - firstRenewalMs, marginMs: 900 }]);
    await clock.advance(firstRenewalMs);
    expect(late).toHaveLength(1);
  } finally {
    unsubscribe("holdfast:late-renewal", listen);
  }
});

test("the shortest TTL is renewed without a busy loop", async () => {
  const target = watched(renewingFor(100), { ttlMs: 100, validity: validFrom(instantNow(clock), 100) });
  await clock.advance(1_000);
  expect(target.renewals.length).toBeGreaterThan(25);
  expect(target.renewals.length).toBeLessThan(40);
});

test("a renewal is sent with another one that is due, at most a twentieth of the TTL and 100 ms early", async () => {
  const targets = [watched(renewing)];
  for (let lease = 0; lease < 20; lease++) {
    await clock.advance(40);
    targets.push(watched(renewing));
  }
  await clock.advance(firstRenewalMs);
  const times = targets.map(({ renewals: [first] }) => first as number);
  times.forEach((at, index) => {
    const dueAt = firstRenewalMs + index * 40;
    expect(at).toBeLessThanOrEqual(dueAt);
    expect(at).toBeGreaterThanOrEqual(dueAt - 100);
  });
  expect(new Set(times).size).toBe(7); // 21 leases, 40 ms apart: three in each group
});

test("a deadline is not advanced by a renewal, and neither are a repeat and a report", async () => {
  const ends = watched(renewing, { needsRenewal: false, endsAt: firstRenewalMs + 50 });
  const reports = watched(
    (attempt) => {
      reports.reportAt = attempt > 1 ? Infinity : reports.reportAt;
      return renewing();
    },
    { reportAt: firstRenewalMs + 50 },
  );
  const repeats = watched(failing);
  watched(renewing);
  await clock.advance(firstRenewalMs + 500);
  expect(ends.losses).toEqual([[firstRenewalMs + 50, "max-hold", undefined]]);
  expect(reports.renewals[0]).toBe(firstRenewalMs);
  expect(reports.renewals[1]).toBe(firstRenewalMs + 50);
  const others = Array.from({ length: 20 }, () => watched(renewing));
  await clock.advance(firstRenewalMs);
  expect(repeats.renewals.some((at) => others[0]?.renewals.includes(at))).toBe(false);
});
