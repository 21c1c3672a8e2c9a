import fc from "fast-check";
import { manualClock, type ManualClock } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import type { ExtendResult, VerifyResult } from "../../src/driver.ts";
import { instantNow } from "../../src/runtime/clock.ts";
import { validFrom } from "../../src/validity.ts";
import { LeaseSlot, slotsOfBlock } from "../../src/watchdog-thread/lease-slot.ts";
import type { ThreadLease } from "../../src/watchdog-thread/messages.ts";
import { Slots } from "../../src/watchdog-thread/slots.ts";
import { ThreadRenewer } from "../../src/watchdog-thread/thread-renewer.ts";

const ttlMs = 3_000;
const leadMs = 1_000_000;

interface Fixture {
  readonly clock: ManualClock;
  readonly slot: LeaseSlot;
  readonly renewals: number[];
  readonly renewer: ThreadRenewer;
  /** The end of the grant at the engine. */
  readonly engine: { until: number };
  /** The keys of leases that the engine did not have. */
  readonly unknown: string[];
  blockedMs: number;
}

/** A lease whose own thread never renews it. */
function blockedLease(
  options: {
    reply?: () => Promise<ExtendResult>;
    verified?: () => Promise<VerifyResult>;
    holdMs?: number;
  } = {},
): Fixture {
  const clock = manualClock();
  const { slot, block, index, lease } = new Slots(() => undefined).take();
  const { until, untilWall } = validFrom(instantNow(clock), ttlMs);
  slot.begin({
    until: until + leadMs,
    untilWall,
    endsAt: clock.now() + (options.holdMs ?? Infinity) + leadMs,
  });
  const engine = { until: clock.now() + ttlMs };
  const renewals: number[] = [];
  const extend = async (): Promise<ExtendResult> => {
    renewals.push(clock.now());
    if (options.reply) {
      return options.reply();
    }
    if (engine.until <= clock.now()) {
      return { outcome: "lost", reason: "expired" };
    }
    const sent = instantNow(clock);
    engine.until = sent.now + ttlMs;
    return { outcome: "extended", validity: validFrom(sent, ttlMs) };
  };
  const valid = async (): Promise<VerifyResult> => ({
    outcome: "valid",
    validity: validFrom(instantNow(clock), engine.until - clock.now()),
  });
  const fixture: Fixture = {
    clock,
    slot,
    renewals,
    engine,
    unknown: [],
    blockedMs: 0,
    renewer: new ThreadRenewer({
      clock,
      engine: { extend, verify: options.verified ?? valid },
      monotonicLeadMs: leadMs,
      blockedMs: () => fixture.blockedMs,
      maxBlockedMs: 10_000,
      unknownLease: (key) => fixture.unknown.push(key),
    }),
  };
  const added: ThreadLease = { block, index, lease, key: "k", token: "t", fencingToken: 1n, ttlMs };
  fixture.renewer.add(added, slot);
  return fixture;
}

describe("the renewer of the thread", () => {
  test("renews when half of the TTL has passed, and not a lease that its own thread renews", async () => {
    const { clock, slot, renewals } = blockedLease();
    await clock.advance(1_400);
    expect(renewals).toEqual([]);
    slot.extend({ until: clock.now() + ttlMs + leadMs, untilWall: clock.wall() + ttlMs });
    await clock.advance(1_400);
    expect(renewals).toEqual([]);
    await clock.advance(200);
    expect(renewals.length).toBe(1);
    await clock.advance(60_000);
    expect(renewals.length).toBeGreaterThan(35);
    expect(slot.times).toBeDefined();
  });

  test("stops for a thread that has been blocked for too long, for an ending lease and for an ended one", async () => {
    const blocked = blockedLease();
    blocked.blockedMs = 10_001;
    await blocked.clock.advance(2 * ttlMs);
    expect([blocked.renewals, blocked.renewer.size]).toEqual([[], 0]);
    const ending = blockedLease({ holdMs: 1_000 });
    await ending.clock.advance(2 * ttlMs);
    expect(ending.renewals).toEqual([]);
    const ended = blockedLease();
    ended.slot.end();
    await ended.clock.advance(2 * ttlMs);
    expect([ended.renewals, ended.renewer.size]).toEqual([[], 0]);
  });

  test("repeats a failed renewal until the end of the validity", async () => {
    const { clock, renewals, renewer } = blockedLease({
      reply: async () => ({ outcome: "unknown", error: new Error("away") }),
    });
    await clock.advance(2 * ttlMs);
    expect(renewals.length).toBeGreaterThanOrEqual(5);
    expect(renewals.length).toBeLessThanOrEqual(8);
    expect(renewer.size).toBe(0);
  });

  test("reports the loss that the engine replies", async () => {
    const { clock, slot } = blockedLease({ reply: async () => ({ outcome: "lost", reason: "broken" }) });
    await clock.advance(ttlMs);
    expect([slot.times, slot.loss]).toEqual([undefined, "broken"]);
  });

  test("reports no loss of an engine that has had no lease of the process, and says so", async () => {
    const lost = async () => ({ outcome: "lost", reason: "expired" }) as const;
    const { clock, slot, renewals, renewer, unknown } = blockedLease({ reply: lost, verified: lost });
    await clock.advance(0);
    expect(unknown).toEqual(["k"]);
    await clock.advance(0.9 * ttlMs);
    expect([renewals.length, renewer.size]).toEqual([1, 0]);
    expect([slot.times?.until, slot.loss]).toEqual([expect.any(Number), undefined]);
  });

  test("says nothing of a lease that has ended during its verification", async () => {
    let reply!: (result: VerifyResult) => void;
    const late = blockedLease({ verified: () => new Promise((resolve) => (reply = resolve)) });
    late.slot.end();
    reply({ outcome: "lost", reason: "expired" });
    await late.clock.advance(0);
    expect(late.unknown).toEqual([]);
  });

  test("never shows a validity beyond the end of the grant, whatever the clocks and replies do", async () => {
    const step = fc.record({
      ms: fc.integer({ min: 1, max: 2_500 }),
      blockedMs: fc.constantFrom(0, 0, 0, 20_000),
      sleepMs: fc.constantFrom(0, 0, 0, 500, 4_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const fixture = blockedLease();
        const { clock, slot, engine } = fixture;
        for (const { ms, blockedMs, sleepMs } of steps) {
          fixture.blockedMs = blockedMs;
          await clock.advance(ms);
          if (sleepMs > 0) {
            clock.sleep(sleepMs);
            engine.until -= sleepMs; // the engine does not sleep
          }
          const { times } = slot;
          if (times) {
            const remaining = Math.min(times.until - leadMs - clock.now(), times.untilWall - clock.wall());
            expect(remaining).toBeLessThanOrEqual(engine.until - clock.now());
          }
        }
      }),
    );
  });
});

describe("a slot", () => {
  test("shows and changes nothing of the next lease in the same memory", () => {
    const memory = new BigInt64Array(new SharedArrayBuffer(slotsOfBlock * 24));
    const former = new LeaseSlot(memory, 7, 1);
    const times = { until: 5_000, untilWall: 1_795_000_000_000, endsAt: 9_000 };
    former.begin(times);
    expect(former.times).toEqual(times);
    const next = new LeaseSlot(memory, 7, 2);
    next.begin({ ...times, until: 6_000 });
    former.extend({ until: 99_000, untilWall: 1_796_000_000_000 });
    former.lose("broken");
    former.endAt(1);
    former.end();
    expect([former.times, former.loss]).toEqual([undefined, undefined]);
    expect([next.times, next.loss]).toEqual([{ ...times, until: 6_000 }, undefined]);
    next.lose("stolen");
    next.extend({ until: 99_000, untilWall: 1 });
    expect([next.times, next.loss]).toEqual([undefined, "stolen"]);
  });

  test("is used again, under a new number, and memory grows in blocks", () => {
    const blocks: SharedArrayBuffer[] = [];
    const slots = new Slots((block) => blocks.push(block));
    const first = slots.take();
    first.free();
    const again = slots.take();
    expect([again.block, again.index, again.lease]).toEqual([first.block, first.index, first.lease + 1]);
    for (let i = 0; i < slotsOfBlock; i += 1) {
      slots.take();
    }
    expect(blocks.length).toBe(2);
  });
});
