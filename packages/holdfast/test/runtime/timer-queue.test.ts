import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

import fc from "fast-check";
import { manualClock, type ManualClock } from "holdfast/testing";
import { expect, test } from "vitest";

import { systemClock } from "../../src/runtime/clock.ts";
import { TimerQueue, type Scheduled } from "../../src/runtime/timer-queue.ts";

interface Item extends Scheduled {
  readonly name: number;
}

function item(name: number): Item {
  return { name, dueAt: 0, slot: -1 };
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ schedule: fc.nat(30), inMs: fc.integer({ min: -5, max: 50 }) }) },
  { weight: 2, arbitrary: fc.record({ cancel: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ advance: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ block: fc.nat(20) }) },
);

/** A manual clock whose timers may stop to keep the process alive, as those of the process do. @param held whether each timer does */
function restingClock(held: Map<unknown, boolean>): ManualClock {
  const clock = manualClock();
  return {
    ...clock,
    setTimer(action, delayMs, keepsProcessAlive = false) {
      const timer = clock.setTimer(
        () => {
          held.delete(timer);
          action();
        },
        delayMs,
        keepsProcessAlive,
      );
      held.set(timer, keepsProcessAlive);
      return timer;
    },
    clearTimer(timer) {
      held.delete(timer);
      clock.clearTimer(timer);
    },
    keepAlive(timer, keepsProcessAlive) {
      held.set(timer, keepsProcessAlive);
    },
  };
}

test.each([
  ["is cleared without items", false],
  ["stays set, and keeps no process alive without items", true],
])("it wakes the same items in the same order as a sorted list, with one timer that %s", async (_, rests) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 100, size: "max" }), async (steps) => {
      const held = new Map<unknown, boolean>();
      const clock = rests ? restingClock(held) : manualClock();
      const woken: { at: number; dueAt: number; name: number }[] = [];
      const queue = new TimerQueue<Item>(
        clock,
        ({ name, dueAt }) => {
          woken.push({ at: clock.now(), dueAt, name });
        },
        rests,
      );
      const items = Array.from({ length: 31 }, (_, name) => item(name));
      const model = new Map<number, number>();
      for (const now of steps) {
        if ("schedule" in now) {
          const dueAt = clock.now() + now.inMs;
          queue.schedule(items[now.schedule] as Item, dueAt);
          model.set(now.schedule, dueAt);
        } else if ("cancel" in now) {
          queue.cancel(items[now.cancel] as Item);
          model.delete(now.cancel);
        } else if ("block" in now) {
          clock.block(now.block);
        } else {
          await clock.advance(now.advance);
          const due = [...model].filter(([, dueAt]) => dueAt <= clock.now());
          for (const [name] of due) {
            model.delete(name);
          }
          expect(woken.map(({ dueAt }) => dueAt)).toEqual(
            due.map(([, dueAt]) => dueAt).sort((a, b) => a - b),
          );
          expect(new Set(woken.map(({ name }) => name))).toEqual(new Set(due.map(([name]) => name)));
          expect(woken.every(({ at, dueAt }) => at >= dueAt)).toBe(true);
          woken.length = 0;
        }
        expect(queue.size).toBe(model.size);
        if (rests) {
          expect([...held.values()].filter((keepsAlive) => keepsAlive)).toHaveLength(model.size > 0 ? 1 : 0);
          expect(clock.timers()).toBeLessThanOrEqual(1);
        } else {
          expect(clock.timers()).toBe(model.size > 0 ? 1 : 0);
        }
        expect(items.map(({ slot }) => slot >= 0)).toEqual(items.map(({ name }) => model.has(name)));
      }
    }),
    { numRuns: 60 },
  );
});

test("a woken item can be rescheduled, by its own wake or by another", async () => {
  const clock = manualClock();
  const woken: string[] = [];
  const [one, other] = [item(1), item(2)];
  const queue = new TimerQueue<Item>(clock, (due) => {
    woken.push(`${due.name} at ${clock.now()}`);
    if (woken.length < 4) {
      queue.schedule(due, clock.now() + 10);
    } else {
      queue.cancel(other);
    }
  });
  queue.schedule(one, 10);
  queue.schedule(other, 15);
  await clock.advance(100);
  expect(woken).toEqual(["1 at 10", "2 at 15", "1 at 20", "2 at 25", "1 at 30"]);
  expect(clock.timers()).toBe(0);
});

test("an item that becomes due during a blocking wake is woken next", async () => {
  const clock = manualClock();
  const woken: string[] = [];
  const queue = new TimerQueue<Item>(clock, (due) => {
    woken.push(`${due.name} at ${clock.now()}`);
    if (woken.length === 1) {
      clock.block(100);
      queue.schedule(due, 20);
    }
  });
  clock.setTimer(() => woken.push("another timer"), 30);
  queue.schedule(item(1), 10);
  queue.schedule(item(2), 40);
  await clock.advance(10);
  await clock.advance(1);
  expect(woken).toEqual(["1 at 10", "1 at 110", "2 at 110", "another timer"]);
});

test("at most 256 items are woken before the process reads what has arrived", async () => {
  const woken: number[] = [];
  const queue = new TimerQueue<Item>(systemClock, ({ name }) => {
    const end = performance.now() + 0.1;
    while (performance.now() < end) {
      // 12 000 wakes take longer than any timer of 1 ms
    }
    woken.push(name);
  });
  const [far, near] = await connectedSockets();
  const replied = once(near, "data").then(() => woken.length);
  for (let name = 0; name < 12_000; name += 1) {
    queue.schedule(item(name), performance.now());
  }
  far.write("reply");
  await expect(replied).resolves.toBeLessThan(12_000);
  queue.clear();
  far.destroy();
  near.destroy();
});

async function connectedSockets(): Promise<[Socket, Socket]> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const far = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[near]] = (await Promise.all([once(server, "connection"), once(far, "connect")])) as [
    [Socket],
    unknown,
  ];
  server.close();
  return [far, near];
}

test("Infinity removes the item", async () => {
  const clock = manualClock();
  const queue = new TimerQueue<Item>(clock, () => expect.unreachable());
  const only = item(1);
  queue.schedule(only, 10);
  queue.schedule(only, Infinity);
  expect([queue.size, only.slot, clock.timers()]).toEqual([0, -1, 0]);
  await clock.advance(100);
});

test("clear removes all items, and they can be scheduled again", async () => {
  const clock = manualClock();
  const woken: number[] = [];
  const queue = new TimerQueue<Item>(clock, ({ name }) => woken.push(name));
  const items = [item(1), item(2), item(3)];
  for (const one of items) {
    queue.schedule(one, 10);
  }
  queue.clear();
  expect([queue.size, clock.timers()]).toEqual([0, 0]);
  queue.schedule(items[1] as Item, 5);
  await clock.advance(100);
  expect(woken).toEqual([2]);
});

test("its timer keeps the process alive only on request", () => {
  const clock = manualClock();
  new TimerQueue<Item>(clock, () => undefined).schedule(item(1), 10);
  expect([clock.timers(true), clock.timers(false)]).toEqual([0, 1]);
  new TimerQueue<Item>(clock, () => undefined, true).schedule(item(1), 10);
  expect([clock.timers(true), clock.timers(false)]).toEqual([1, 1]);
});

test("an overdue timer is not replaced, because a new timer would run after all other due timers", async () => {
  const clock = manualClock();
  let timers = 0;
  const counting = {
    now: () => clock.now(),
    wall: () => clock.wall(),
    setTimer: (action: () => void, delayMs: number) => {
      timers += 1;
      return clock.setTimer(action, delayMs);
    },
    clearTimer: (timer: unknown) => {
      clock.clearTimer(timer);
    },
  };
  const woken: number[] = [];
  const queue = new TimerQueue<Item>(counting, ({ name }) => woken.push(name));
  queue.schedule(item(1), 10);
  clock.block(100); // the process is blocked
  queue.schedule(item(2), 5);
  expect(timers).toBe(1);
  await clock.advance(1);
  expect(woken).toEqual([2, 1]);
});
