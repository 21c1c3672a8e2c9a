import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  asker,
  ScriptStage,
  type Answer,
  type Asker,
} from "../../../../support/script-fixture.ts";

const counter = counterKey();
const dayMicros = 86_400_000_000;
const releaseOf = ({ token, terms }: Asker, isOwn = "1"): string[] => ["release", token, terms, isOwn];

onRedis("the counter of fencing numbers", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await stage.listen(2);
  });
  afterAll(() => stage.close());

  test("says the last number given out, has no expiry, and is one for all locks", async () => {
    const { last } = await stage.grant(stage.lock(), asker(1), { want: 5 });
    expect(await stage.counter()).toBe(last);
    const { first } = await stage.grant(stage.lock(), asker(1, { share: "r" }));
    expect(first).toBeGreaterThan(last);
    expect(await stage.redis.get(counter)).toBe(String(first));
    expect(await stage.redis.pttl(counter)).toBe(-1);
  });

  test("grants of one call have numbers one behind the other, of whatever lock and kind", async () => {
    const answers = await stage.batch([
      [stage.lock(), acquireOf(asker(1), { want: 17 })],
      [stage.lock(), acquireOf(asker(1, { share: "s1/3" }), { want: 17 })],
      [stage.lock(), acquireOf(asker(1), { words: '["owner","a"]', want: 3 })],
      [stage.lock(), acquireOf(asker(1))],
    ]);
    const start = Number(answers[0]?.[1]);
    expect(numbersOf(answers)).toEqual([
      [start, start + 16],
      [start + 17, start + 33],
      [start + 34, start + 36],
      [start + 37, start + 37],
    ]);
    expect(await stage.counter()).toBe(start + 37);
  });

  test("two grants of one lock in one call have rising numbers, by reply and by message", async () => {
    const keys = stage.lock();
    const [one, other] = [asker(1), asker(3)];
    const answers = await stage.batch([
      [keys, acquireOf(one, { want: 4 })],
      [keys, acquireOf(asker(2, { want: 2 }), { wait: "1" })],
      [keys, releaseOf(one)],
      [keys, releaseOf(asker(2))],
      [keys, acquireOf(other)],
    ]);
    const first = Number(answers[0]?.[1]);
    const [, , told, last] = ((await stage.heard(2))[0] ?? "").split(" ");
    expect([first + 4, first + 5]).toEqual([Number(told), Number(last)]);
    expect(answers[4]).toEqual([1, first + 6, first + 6, other.token]);
    expect(await stage.counter()).toBe(first + 6);
  });

  test("while it is more than 10 ms ahead of the time one number is given, whatever was asked", async () => {
    const keys = stage.lock();
    const ahead = (await serverMicros(stage)) + 60_000_000;
    await stage.redis.set(counter, ahead);
    const lock = stage.lock();
    const single = { first: ahead + 1, last: ahead + 1 };
    expect(await stage.grant(lock, asker(1), { want: 17 })).toEqual(single);
    expect(await stage.numbersOf(lock)).toEqual(single);
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2, { want: 17 }));
    await stage.ask(keys, releaseOf(asker(1)));
    expect((await stage.heard(2))[0]?.split(" ").slice(2, 4)).toEqual([String(ahead + 3), String(ahead + 3)]);
    expect(await stage.counter()).toBe(ahead + 3);
    await stage.redis.del(counter);
  });

  test("so a call cannot run further ahead than by one block behind the 10 ms", async () => {
    const blocks = Array.from(
      { length: 200 },
      () => [stage.lock(), acquireOf(asker(1), { want: 1_000 })] as const,
    );
    await stage.redis.del(counter);
    const [first, ...others] = numbersOf(await stage.batch(blocks)) as [
      [number, number],
      ...[number, number][],
    ];
    const [start] = first;
    const sizes = [first, ...others].map(([from, to]) => to - from + 1);
    expect(sizes.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 1_000));
    expect(new Set(sizes.slice(11))).toEqual(new Set([1]));
    expect(others.at(-1)?.[1]).toBe(start + 11_000 + 189 - 1);
  });

  test("is kept to its last digit, without an exponent, in K, in an answer and in a message", async () => {
    const keys = stage.lock();
    const now = await serverMicros(stage);
    const ahead = now - (now % 10) + 3_600_000_003;
    await stage.redis.set(counter, ahead);
    expect(await stage.grant(keys, asker(1))).toEqual({ first: ahead + 1, last: ahead + 1 });
    expect(await stage.redis.get(keys[0])).toBe(`${asker(1).token} ${ahead + 1} 1`);
    expect(await stage.redis.get(counter)).toBe(String(ahead + 1));
    await stage.queue(keys, asker(2));
    await stage.ask(keys, releaseOf(asker(1)));
    expect((await stage.heard(2))[0]?.split(" ").slice(2, 4)).toEqual([String(ahead + 2), String(ahead + 2)]);
    await stage.redis.del(counter);
  });

  test("where it is lost with all else, server time is the floor: numbers rise", async () => {
    const keys = stage.lock();
    const told: number[] = [];
    for (const lose of ["FLUSHALL", "FLUSHDB", `DEL ${counter} ${keys[0]}`]) {
      const { first, last } = await stage.grant(keys, asker(1), { want: 17 });
      told.push(first, last);
      const [command = "", ...args] = lose.split(" ");
      await stage.redis.call(command, ...args);
    }
    told.push((await stage.grant(keys, asker(1))).first);
    expect(told).toEqual(told.toSorted((one, other) => one - other));
    expect(new Set(told).size).toBe(told.length);
  });

  test("a grant that is asked for again is not numbered again", async () => {
    const keys = stage.lock();
    const granted = await stage.grant(keys, asker(1), { want: 3 });
    const before = await stage.counter();
    expect(await stage.grant(keys, asker(1), { want: 3 })).toEqual(granted);
    expect(await stage.queue(keys, asker(1))).toEqual([1, granted.first, granted.last, asker(1).token]);
    expect(await stage.counter()).toBe(before);
  });

  describe("one that cannot be true is refused, by its name, and nothing is granted:", () => {
    const cases = [
      ["text", "abc"],
      ["nothing", ""],
      ["a sign", "-5"],
      ["a fraction", "1.5"],
      ["an exponent", "1e15"],
      ["a blank", "17 "],
      ["more than a day ahead", () => dayMicros + 60_000_000],
      ["far too many digits", "9".repeat(400)],
    ] as const;
    for (const [what, value] of cases) {
      test(what, async () => {
        const [keys, shared] = [stage.lock(), stage.lock()];
        const text = typeof value === "string" ? value : String((await serverMicros(stage)) + value());
        await stage.redis.set(counter, text);
        try {
          for (const [lock, who] of [
            [keys, asker(1)],
            [shared, asker(1, { share: "r" })],
          ] as const) {
            for (const wait of ["0", "1"] as const) {
              const [kind, words] = await stage.ask(lock, acquireOf(who, { wait }));
              expect([kind, words]).toEqual(["error", expect.stringMatching(`^COUNTER ${counter} has `)]);
            }
            expect(await stage.redis.exists(...lock.slice(0, 2))).toBe(0);
          }
          expect(await stage.redis.get(counter)).toBe(text);
        } finally {
          await stage.redis.del(counter);
        }
      });
    }

    test("a key of another type", async () => {
      await stage.redis.hset(counter, "a", "1");
      try {
        const keys = stage.lock();
        const [kind, words] = await stage.ask(keys, acquireOf(asker(1)));
        expect([kind, words]).toEqual(["error", expect.stringMatching(`^WRONGTYPE .*${counter}$`)]);
        expect(await stage.redis.exists(...keys)).toBe(0);
      } finally {
        await stage.redis.del(counter);
      }
    });

    test("nor is a lock handed over: who waits keeps its place, and gets it when the counter is right again", async () => {
      const keys = stage.lock();
      await stage.grant(keys, asker(1));
      await stage.queue(keys, asker(2));
      await stage.redis.set(counter, "abc");
      const answer = await stage.ask(keys, releaseOf(asker(1)));
      expect(answer).toEqual(["error", expect.stringMatching(`^COUNTER ${counter} `)]);
      expect(await stage.redis.exists(keys[0])).toBe(0);
      expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2).member]);
      expect(await stage.heard(2)).toEqual([]);
      await stage.redis.del(counter);
      await stage.ask(keys, releaseOf(asker(1)));
      expect(await stage.holder(keys)).toBe(asker(2).token);
      expect(await stage.heard(2)).toHaveLength(1);
    });
  });

  test("almost a day ahead counts", async () => {
    const ahead = (await serverMicros(stage)) + dayMicros - 60_000_000;
    await stage.redis.set(counter, ahead);
    expect((await stage.grant(stage.lock(), asker(1))).first).toBe(ahead + 1);
    await stage.redis.del(counter);
  });

  test("is kept also where an operation of the call fails, before the grants or behind them", async () => {
    const [broken, shared] = [stage.lock(), stage.lock()];
    await stage.redis.lpush(broken[0], "a");
    await stage.grant(shared, asker(5, { share: "s1/2" }));
    const fails = [broken, acquireOf(asker(1))] as const;
    const answers = await stage.batch([
      fails,
      [stage.lock(), acquireOf(asker(1), { want: 3 })],
      fails,
      [stage.lock(), acquireOf(asker(1))],
      [shared, acquireOf(asker(1, { share: "r" }))], // another kind
      [broken, ["nonsense", "1", "2", "3"]],
    ]);
    expect(answers.map(([status]) => status)).toEqual(["error", 1, "error", 1, "error", "error"]);
    expect(await stage.counter()).toBe(answers[3]?.[2]);
    expect(Number(answers[3]?.[1])).toBe(Number(answers[1]?.[2]) + 1);
    expect((await stage.grant(stage.lock(), asker(1))).first).toBeGreaterThan(await lastOf(answers));
  });

  test("is kept where a hand-over was numbered and failed: that number is not given again", async () => {
    await stage.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(stage.server.client({ username: "mute", password: "any" }));
    const [keys, other] = [stage.lock(), stage.lock()];
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    const [granted, failed] = await stage.batch(
      [
        [other, acquireOf(asker(1), { want: 5 })],
        [keys, releaseOf(asker(1))],
      ],
      { connection: mute },
    );
    expect(failed?.[0]).toBe("error");
    const last = Number(granted?.[2]);
    expect(await stage.counter()).toBe(last + 1);
    expect((await stage.grant(stage.lock(), asker(1))).first).toBeGreaterThan(last + 1);
  });
});

function numbersOf(answers: readonly Answer[]): [number, number][] {
  return answers.map(([, first, last]) => [Number(first), Number(last)]);
}

async function lastOf(answers: readonly Answer[]): Promise<number> {
  return Math.max(...numbersOf(answers.filter(([status]) => status === 1)).flat());
}

async function serverMicros({ redis }: ScriptStage): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}
