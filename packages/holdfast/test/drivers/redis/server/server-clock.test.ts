import { manualClock, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { ServerClock } from "../../../../src/drivers/redis/server/server-clock.ts";

const serverMicros = 1_700_000_000_000_000;

let clock: ManualClock;
let time: ServerClock;

beforeEach(() => {
  clock = manualClock({ now: 1_000 });
  time = new ServerClock(clock);
});

function observe(micros: number, sentAt: number, receivedAt: number): void {
  time.observe(micros, { now: sentAt, wall: sentAt + clock.wall() - clock.now() }, receivedAt);
}

test("the time is unknown before the first reply", () => {
  expect(time.isKnown).toBe(false);
  observe(serverMicros, 990, 1_000);
  expect(time.isKnown).toBe(true);
});

test("the time in a reply is assumed to be of the middle of its round trip, and advances with the client's clock", async () => {
  observe(serverMicros, 990, 1_000);
  expect(time.micros()).toBe(serverMicros + 5_000);
  await clock.advance(2_000);
  expect(time.micros()).toBe(serverMicros + 2_005_000);
});

test("a shorter round trip improves the estimate, and a longer one changes nothing", () => {
  observe(serverMicros, 990, 1_000);
  observe(serverMicros + 5_000, 980, 1_000);
  expect(time.micros()).toBe(serverMicros + 5_000);
  observe(serverMicros + 1_000, 998, 1_000);
  expect(time.micros()).toBe(serverMicros + 2_000);
});

test("an estimate ages: after a while a worse one replaces it", async () => {
  observe(serverMicros, 998, 1_000);
  await clock.advance(100_000);
  const later = serverMicros + 100_000_000;
  observe(later, 101_000 - 24, 101_000); // ten times 1 ms in 100 s, and 1 ms: too imprecise
  expect(time.micros()).not.toBe(later + 12_000);
  observe(later, 101_000 - 22, 101_000);
  expect(time.micros()).toBe(later + 11_000);
});

test("a clock that was set is noticed at the next reply, even after a long round trip", () => {
  observe(serverMicros, 999, 1_000);
  observe(serverMicros + 10_000_000, 900, 1_000);
  expect(time.micros()).toBe(serverMicros + 10_050_000);
  expect(time.errorMs).toBe(50);
});

test("after a reconnect the next reply counts, whatever its round trip", () => {
  observe(serverMicros, 999, 1_000);
  time.invalidate();
  observe(serverMicros - 9_000_000, 900, 1_000);
  expect(time.micros()).toBe(serverMicros - 9_000_000 + 50_000);
  expect(time.isKnown).toBe(true);
});

test("tickets rise strictly, within a microsecond and when the server's time steps back", async () => {
  observe(serverMicros, 1_000, 1_000);
  const tickets = [time.ticket(), time.ticket(), time.ticket()];
  expect(tickets).toEqual([serverMicros, serverMicros + 1, serverMicros + 2]);
  time.invalidate();
  observe(serverMicros - 60_000_000, 1_000, 1_000);
  expect(time.ticket()).toBe(serverMicros + 3);
  await clock.advance(61_000);
  expect(time.ticket()).toBe(serverMicros + 1_000_000);
});

test.each([
  { what: "clocks that drifted apart by one percent", byMs: 990, isInOrder: true },
  { what: "a clock that was set back by more", byMs: 1_100, isInOrder: false },
])("a later ticket goes before an earlier one only after a clock was set: $what", async (set) => {
  observe(serverMicros, 1_000, 1_000);
  await clock.advance(100_000);
  const before = time.ticket();
  await clock.advance(1);
  observe(serverMicros + 100_001_000 - set.byMs * 1_000, 101_001, 101_001);
  expect(time.ticket() > before).toBe(set.isInOrder);
});

test("tickets are whole numbers, whatever the clock says", async () => {
  observe(serverMicros + 0.5, 999.123_4, 1_000);
  await clock.advance(0.777_7);
  expect(Number.isSafeInteger(time.ticket())).toBe(true);
});

test("a reply that was under way while the machine slept gives no present time", () => {
  const sent = { now: clock.now(), wall: clock.wall() };
  clock.sleep(5_000);
  time.observe(serverMicros, sent, clock.now());
  expect(time.errorMs).toBe(Infinity);
  observe(serverMicros + 5_000_000, clock.now(), clock.now());
  expect(time.errorMs).toBe(0);
});

test.each([
  { what: "clocks that drift apart by one percent contradict no estimate", byMs: 990, contradicts: false },
  { what: "a clock that was set by more contradicts it", byMs: 1_100, contradicts: true },
])("$what, however old its reply is", async ({ byMs, contradicts }) => {
  observe(serverMicros, 1_000, 1_000);
  await clock.advance(100_000);
  const before = time.estimate();
  await clock.advance(1);
  observe(serverMicros + 100_001_000 + byMs * 1_000, 101_001, 101_001);
  expect(time.contradicts(before)).toBe(contradicts);
});
