import { afterAll, beforeAll, expect, test } from "vitest";
import { ServerClocks } from "@holdfast/test-kit";

import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage, type Asker } from "../../../../support/script-fixture.ts";

onRedis("where memory is full", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  test("nothing is granted and no number taken; what was told before stays", async () => {
    const before = await stage.grant(stage.lock(), asker(1));
    const [one, other] = [stage.lock(), stage.lock()];
    const answers = await full(() =>
      stage.batch([
        [one, acquireOf(asker(1))],
        [other, acquireOf(asker(1, { share: "r" }))],
      ]),
    );
    expect(answers.map(String)).toEqual([0, 1].map(() => expect.stringMatching(/^error,OOM /) as string));
    expect(await stage.redis.exists(...one, ...other)).toBe(0);
    expect(await stage.counter()).toBe(before.last);
  });

  test("a call whose later operations are granted keeps all numbers that it told", async () => {
    const [held, awaited, one, other, third] = Array.from({ length: 5 }, () => stage.lock());
    if (!held || !awaited || !one || !other || !third) {
      throw new Error("no locks");
    }
    await stage.grant(held, asker(1));
    await stage.grant(awaited, asker(1));
    await stage.queue(awaited, asker(2, { want: 3 }));
    const before = await stage.counter();
    const answers = await full(() =>
      stage.batch([
        [one, acquireOf(asker(1))], // refused
        [held, releaseOf(asker(1))], // the first write: nothing is refused behind it
        [other, acquireOf(asker(1), { want: 7 })],
        [awaited, releaseOf(asker(1))],
        [third, acquireOf(asker(1, { share: "s1/3" }))],
        [one, acquireOf(asker(1))],
      ]),
    );
    expect(answers.map(([status]) => status)).toEqual(["error", 1, 1, 1, 1, 1]);
    const [, , told, last] = ((await stage.heard(2))[0] ?? "").split(" ");
    const numbers = [before, ...answers[2]!.slice(1, 3), told, last, answers[4]?.[1], answers[5]?.[1]].map(
      Number,
    );
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(await stage.counter()).toBe(numbers.at(-1));
    expect((await stage.grant(stage.lock(), asker(3))).first).toBeGreaterThan(Number(numbers.at(-1)));
  });

  test("a release still hands the lock over, with a number that is kept", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2, { want: 3 }));
    expect(await full(() => stage.ask(keys, releaseOf(asker(1))))).toEqual([1, 0, ""]);
    const { last } = await stage.numbersOf(keys);
    expect(await stage.counter()).toBe(last);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  async function full<T>(act: () => Promise<T>): Promise<T> {
    await stage.redis.config("SET", "maxmemory", "1");
    try {
      return await act();
    } finally {
      await stage.redis.config("SET", "maxmemory", "0");
    }
  }
});

onRedis("a clock that is stepped back", () => {
  test("by less than the counter may be ahead: numbers rise; by more: they are refused", async () => {
    await using made = await ServerClocks.make(1);
    const [clock] = made.clocks;
    if (!clock) {
      throw new Error("no clock");
    }
    const stage = await ScriptStage.open([], clock.env);
    try {
      const numbers: number[] = [];
      for (const aheadMs of [0, -100, -5_000, -3_600_000, -80_000_000, -1_000, 0]) {
        clock.set({ aheadMs });
        for (const want of [17, 1]) {
          const { first, last } = await stage.grant(stage.lock(), asker(1), { want });
          numbers.push(first, last);
        }
      }
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
      const distinct = await stage.grant(stage.lock(), asker(1));
      expect(distinct.first).toBeGreaterThan(numbers.at(-1) as number);
      clock.set({ aheadMs: -90_000_000 });
      const [kind, words] = await stage.ask(stage.lock(), acquireOf(asker(1)));
      expect([kind, words]).toEqual(["error", expect.stringContaining(counterKey())]);
    } finally {
      await stage.close();
    }
  });
});

function releaseOf({ token, terms }: Asker): string[] {
  return ["release", token, terms, "1"];
}
