import { afterAll, beforeAll, expect, test } from "vitest";
import { ServerClocks } from "@holdfast/test-kit";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture, type Requester } from "../../../../support/script-fixture.ts";

onRedis("with full memory", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  test("no lock is granted and no number is used, and earlier grants stay", async () => {
    const before = await fixture.grant(fixture.lock(), requester(1));
    const [one, other] = [fixture.lock(), fixture.lock()];
    const answers = await full(() =>
      fixture.batch([
        [one, acquireOf(requester(1))],
        [other, acquireOf(requester(1, { lockMode: "r" }))],
      ]),
    );
    expect(answers.map(String)).toEqual([0, 1].map(() => expect.stringMatching(/^error,OOM /) as string));
    expect(await fixture.redis.exists(...one, ...other)).toBe(0);
    expect(await fixture.counter()).toBe(before.last);
  });

  test("a call whose later operations are granted keeps all numbers of its replies", async () => {
    const [held, awaited, one, other, third] = Array.from({ length: 5 }, () => fixture.lock());
    if (!held || !awaited || !one || !other || !third) {
      throw new Error("no locks");
    }
    await fixture.grant(held, requester(1));
    await fixture.grant(awaited, requester(1));
    await fixture.queue(awaited, requester(2, { fencingCount: 3 }));
    const before = await fixture.counter();
    const answers = await full(() =>
      fixture.batch([
        [one, acquireOf(requester(1))], // refused
        [held, releaseOf(requester(1))], // the first write, after which the script is refused nothing
        [other, acquireOf(requester(1), { fencingCount: 7 })],
        [awaited, releaseOf(requester(1))],
        [third, acquireOf(requester(1, { lockMode: "s1/3" }))],
        [one, acquireOf(requester(1))],
      ]),
    );
    expect(answers.map(([status]) => status)).toEqual(["error", 1, 1, 1, 1, 1]);
    const [, , notified, last] = ((await fixture.received(2))[0] ?? "").split(" ");
    const numbers = [
      before,
      ...answers[2]!.slice(1, 3),
      notified,
      last,
      answers[4]?.[1],
      answers[5]?.[1],
    ].map(Number);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(await fixture.counter()).toBe(numbers.at(-1));
    expect((await fixture.grant(fixture.lock(), requester(3))).first).toBeGreaterThan(Number(numbers.at(-1)));
  });

  test("a release still hands the lock over, and its number is kept", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2, { fencingCount: 3 }));
    expect(await full(() => fixture.run(keys, releaseOf(requester(1))))).toEqual([1, 0, ""]);
    const { last } = await fixture.numbersOf(keys);
    expect(await fixture.counter()).toBe(last);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  async function full<T>(act: () => Promise<T>): Promise<T> {
    await fixture.redis.config("SET", "maxmemory", "1");
    try {
      return await act();
    } finally {
      await fixture.redis.config("SET", "maxmemory", "0");
    }
  }
});

onRedis("a clock that is stepped back", () => {
  test("by less than the counter may be ahead: numbers rise. By more: requests are refused", async () => {
    await using made = await ServerClocks.make(1);
    const [clock] = made.clocks;
    if (!clock) {
      throw new Error("no clock");
    }
    const fixture = await ScriptFixture.open([], clock.env);
    try {
      const numbers: number[] = [];
      for (const aheadMs of [0, -100, -5_000, -3_600_000, -80_000_000, -1_000, 0]) {
        clock.set({ aheadMs });
        for (const fencingCount of [17, 1]) {
          const { first, last } = await fixture.grant(fixture.lock(), requester(1), { fencingCount });
          numbers.push(first, last);
        }
      }
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
      const distinct = await fixture.grant(fixture.lock(), requester(1));
      expect(distinct.first).toBeGreaterThan(numbers.at(-1) as number);
      clock.set({ aheadMs: -90_000_000 });
      const [kind, message] = await fixture.run(fixture.lock(), acquireOf(requester(1)));
      expect([kind, message]).toEqual(["error", expect.stringContaining(counterKey())]);
    } finally {
      await fixture.close();
    }
  });
});

function releaseOf({ token, entryTail }: Requester): string[] {
  return ["release", token, entryTail, "1"];
}
