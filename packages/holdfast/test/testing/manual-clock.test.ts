import { manualClock } from "holdfast/testing";
import { expect, test } from "vitest";

test("timers run at their times, in order, and those of one time in the order of creation", async () => {
  const clock = manualClock({ now: 5 });
  const ran: string[] = [];
  for (const [name, delayMs] of [
    ["c", 30],
    ["a", 10],
    ["b", 10],
    ["never", 31],
  ] as const) {
    clock.setTimer(() => ran.push(`${name} at ${clock.now()}`), delayMs);
  }
  await clock.advance(30);
  expect(ran).toEqual(["a at 15", "b at 15", "c at 35"]);
  expect(clock.timers()).toBe(1);
});

test("promise reactions of a timer run before the next timer", async () => {
  const clock = manualClock();
  const ran: string[] = [];
  clock.setTimer(() => {
    void (async () => {
      for (let turn = 0; turn < 20; turn += 1) {
        await Promise.resolve();
      }
      ran.push("consequence");
      clock.setTimer(() => ran.push(`its timer at ${clock.now()}`), 5);
    })();
  }, 10);
  clock.setTimer(() => ran.push("second"), 10);
  await clock.advance(20);
  expect(ran).toEqual(["consequence", "second", "its timer at 15"]);
});

test("a cleared timer does not run, also if a timer of the same time clears it", async () => {
  const clock = manualClock();
  const cleared = clock.setTimer(() => expect.unreachable(), 10);
  const other: unknown[] = [];
  clock.setTimer(() => {
    clock.clearTimer(other[0]);
  }, 10);
  other.push(clock.setTimer(() => expect.unreachable(), 10));
  clock.clearTimer(cleared);
  await clock.advance(20);
  expect(clock.timers()).toBe(0);
});

test("both clocks advance together, and stand still between advances", async () => {
  const clock = manualClock({ now: 100, wall: 5_000 });
  await clock.advance(10.5);
  expect([clock.now(), clock.wall()]).toEqual([110.5, 5_010.5]);
  await Promise.resolve();
  expect([clock.now(), clock.wall()]).toEqual([110.5, 5_010.5]);
});

test("a sleeping machine's monotonic clock stands still", async () => {
  const clock = manualClock({ now: 0, wall: 5_000 });
  clock.setTimer(() => expect.unreachable(), 10);
  clock.sleep(1_000);
  await clock.advance(0);
  expect([clock.now(), clock.wall(), clock.timers()]).toEqual([0, 6_000, 1]);
});

test("a jump of the wall clock, forward or back, changes nothing else", () => {
  const clock = manualClock({ now: 0, wall: 5_000 });
  clock.jumpWall(1_000);
  clock.jumpWall(-3_000);
  expect([clock.now(), clock.wall()]).toEqual([0, 3_000]);
});

test("while the event loop is blocked time passes and no timer runs", async () => {
  const clock = manualClock({ now: 0, wall: 5_000 });
  const ran: number[] = [];
  clock.setTimer(() => ran.push(clock.now()), 10);
  clock.block(50);
  await Promise.resolve();
  expect([clock.now(), clock.wall(), ran]).toEqual([50, 5_050, []]);
  await clock.advance(0);
  expect(ran).toEqual([50]);
});

test("advancing by a negative time is refused", async () => {
  const clock = manualClock();
  await expect(clock.advance(-1)).rejects.toThrow(RangeError);
  expect(() => {
    clock.sleep(Number.NaN);
  }).toThrow("Expected `ms` to be a number of ms, not negative, got NaN");
});

test("a second advance during the first rejects, and leaves the time to the first", async () => {
  const clock = manualClock();
  let fired = false;
  clock.setTimer(() => (fired = true), 5);
  const first = clock.advance(10);
  await expect(clock.advance(100)).rejects.toThrow(/previous `advance`/);
  await first;
  expect({ fired, now: clock.now() }).toEqual({ fired: true, now: 10 });
  await clock.advance(1);
  expect(clock.now()).toBe(11);
});
