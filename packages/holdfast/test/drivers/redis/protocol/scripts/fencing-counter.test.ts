import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  requester,
  ScriptFixture,
  type ScriptReply,
  type Requester,
} from "../../../../support/script-fixture.ts";

const counter = counterKey();
const dayMicros = 86_400_000_000;
const releaseOf = ({ token, entryTail }: Requester, isOwn = "1"): string[] => [
  "release",
  token,
  entryTail,
  isOwn,
];

onRedis("the counter of fencing numbers", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(2);
  });
  afterAll(() => fixture.close());

  test("has the last number, has no expiry, and serves all locks", async () => {
    const { last } = await fixture.grant(fixture.lock(), requester(1), { fencingCount: 5 });
    expect(await fixture.counter()).toBe(last);
    const { first } = await fixture.grant(fixture.lock(), requester(1, { lockMode: "r" }));
    expect(first).toBeGreaterThan(last);
    expect(await fixture.redis.get(counter)).toBe(String(first));
    expect(await fixture.redis.pttl(counter)).toBe(-1);
  });

  test("gives the grants of one call consecutive numbers, whatever their lock and kind", async () => {
    const answers = await fixture.batch([
      [fixture.lock(), acquireOf(requester(1), { fencingCount: 17 })],
      [fixture.lock(), acquireOf(requester(1, { lockMode: "s1/3" }), { fencingCount: 17 })],
      [fixture.lock(), acquireOf(requester(1), { metadata: '["owner","a"]', fencingCount: 3 })],
      [fixture.lock(), acquireOf(requester(1))],
    ]);
    const start = Number(answers[0]?.[1]);
    expect(numbersOf(answers)).toEqual([
      [start, start + 16],
      [start + 17, start + 33],
      [start + 34, start + 36],
      [start + 37, start + 37],
    ]);
    expect(await fixture.counter()).toBe(start + 37);
  });

  test("gives two grants of one lock in one call rising numbers, by reply and by notification", async () => {
    const keys = fixture.lock();
    const [one, other] = [requester(1), requester(3)];
    const answers = await fixture.batch([
      [keys, acquireOf(one, { fencingCount: 4 })],
      [keys, acquireOf(requester(2, { fencingCount: 2 }), { wait: "1" })],
      [keys, releaseOf(one)],
      [keys, releaseOf(requester(2))],
      [keys, acquireOf(other)],
    ]);
    const first = Number(answers[0]?.[1]);
    const [, , notified, last] = ((await fixture.received(2))[0] ?? "").split(" ");
    expect([first + 4, first + 5]).toEqual([Number(notified), Number(last)]);
    expect(answers[4]).toEqual([1, first + 6, first + 6, other.token]);
    expect(await fixture.counter()).toBe(first + 6);
  });

  test("gives one number while it is more than 10 ms ahead of the time, whatever was requested", async () => {
    const keys = fixture.lock();
    const ahead = (await serverMicros(fixture)) + 60_000_000;
    await fixture.redis.set(counter, ahead);
    const lock = fixture.lock();
    const single = { first: ahead + 1, last: ahead + 1 };
    expect(await fixture.grant(lock, requester(1), { fencingCount: 17 })).toEqual(single);
    expect(await fixture.numbersOf(lock)).toEqual(single);
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2, { fencingCount: 17 }));
    await fixture.run(keys, releaseOf(requester(1)));
    expect((await fixture.received(2))[0]?.split(" ").slice(2, 4)).toEqual([
      String(ahead + 3),
      String(ahead + 3),
    ]);
    expect(await fixture.counter()).toBe(ahead + 3);
    await fixture.redis.del(counter);
  });

  test("so cannot run further ahead in one call than one block after the 10 ms", async () => {
    const blocks = Array.from(
      { length: 200 },
      () => [fixture.lock(), acquireOf(requester(1), { fencingCount: 1_000 })] as const,
    );
    await fixture.redis.del(counter);
    const [first, ...others] = numbersOf(await fixture.batch(blocks)) as [
      [number, number],
      ...[number, number][],
    ];
    const [start] = first;
    const sizes = [first, ...others].map(([from, to]) => to - from + 1);
    expect(sizes.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 1_000));
    expect(new Set(sizes.slice(11))).toEqual(new Set([1]));
    expect(others.at(-1)?.[1]).toBe(start + 11_000 + 189 - 1);
  });

  test("keeps its last digit, without an exponent, in the lock key, in a reply and in a notification", async () => {
    const keys = fixture.lock();
    const now = await serverMicros(fixture);
    const ahead = now - (now % 10) + 3_600_000_003;
    await fixture.redis.set(counter, ahead);
    expect(await fixture.grant(keys, requester(1))).toEqual({ first: ahead + 1, last: ahead + 1 });
    expect(await fixture.redis.get(keys[0])).toBe(`${requester(1).token} ${ahead + 1} 1`);
    expect(await fixture.redis.get(counter)).toBe(String(ahead + 1));
    await fixture.queue(keys, requester(2));
    await fixture.run(keys, releaseOf(requester(1)));
    expect((await fixture.received(2))[0]?.split(" ").slice(2, 4)).toEqual([
      String(ahead + 2),
      String(ahead + 2),
    ]);
    await fixture.redis.del(counter);
  });

  test("yields to the server's time if it is lost with all other data, so numbers rise", async () => {
    const keys = fixture.lock();
    const notified: number[] = [];
    for (const lose of ["FLUSHALL", "FLUSHDB", `DEL ${counter} ${keys[0]}`]) {
      const { first, last } = await fixture.grant(keys, requester(1), { fencingCount: 17 });
      notified.push(first, last);
      const [command = "", ...args] = lose.split(" ");
      await fixture.redis.call(command, ...args);
    }
    notified.push((await fixture.grant(keys, requester(1))).first);
    expect(notified).toEqual(notified.toSorted((one, other) => one - other));
    expect(new Set(notified).size).toBe(notified.length);
  });

  test("does not number a repeated request again", async () => {
    const keys = fixture.lock();
    const granted = await fixture.grant(keys, requester(1), { fencingCount: 3 });
    const before = await fixture.counter();
    expect(await fixture.grant(keys, requester(1), { fencingCount: 3 })).toEqual(granted);
    expect(await fixture.queue(keys, requester(1))).toEqual([
      1,
      granted.first,
      granted.last,
      requester(1).token,
    ]);
    expect(await fixture.counter()).toBe(before);
  });

  describe("is refused by its name if it cannot be true, and no lock is granted:", () => {
    const cases = [
      ["text", "abc"],
      ["nothing", ""],
      ["a sign", "-5"],
      ["a fraction", "1.5"],
      ["an exponent", "1e15"],
      ["a blank", "17 "],
      ["more than a day ahead", () => dayMicros + 60_000_000],
      ["far too many digits", "9".repeat(400)],
      ["accepted, but too large for exact numbers", "09007199254740000"],
    ] as const;
    for (const [what, value] of cases) {
      test(what, async () => {
        const [keys, shared] = [fixture.lock(), fixture.lock()];
        const text = typeof value === "string" ? value : String((await serverMicros(fixture)) + value());
        await fixture.redis.set(counter, text);
        try {
          for (const [lock, client] of [
            [keys, requester(1)],
            [shared, requester(1, { lockMode: "r" })],
          ] as const) {
            for (const wait of ["0", "1"] as const) {
              const [kind, message] = await fixture.run(lock, acquireOf(client, { wait }));
              expect([kind, message]).toEqual(["error", expect.stringMatching(`^COUNTER ${counter} has `)]);
            }
            expect(await fixture.redis.exists(...lock.slice(0, 2))).toBe(0);
          }
          expect(await fixture.redis.get(counter)).toBe(text);
        } finally {
          await fixture.redis.del(counter);
        }
      });
    }

    test("more than a day ahead, unless an operator has accepted that by a leading 0", async () => {
      const number = (await serverMicros(fixture)) + 3 * dayMicros;
      await fixture.redis.set(counter, `0${number}`);
      try {
        const batch = [{}, { lockMode: "r" }].map(
          (options, n) => [fixture.lock(), acquireOf(requester(n, options), { fencingCount: 5 })] as const,
        );
        const granted = (await fixture.batch(batch)).map(([, first, last]) => [first, last]);
        expect(granted).toEqual([
          [number + 1, number + 1],
          [number + 2, number + 2],
        ]);
        expect(await fixture.redis.get(counter)).toBe(`0${number + 2}`);
        expect((await fixture.grant(fixture.lock(), requester(3))).first).toBe(number + 3);
      } finally {
        await fixture.redis.del(counter);
      }
    });

    test("no leading 0 is kept when the time has come near the counter", async () => {
      const number = (await serverMicros(fixture)) + dayMicros / 2;
      await fixture.redis.set(counter, `0${number}`);
      try {
        expect((await fixture.grant(fixture.lock(), requester(1))).first).toBe(number + 1);
        expect(await fixture.redis.get(counter)).toBe(String(number + 1));
      } finally {
        await fixture.redis.del(counter);
      }
    });

    test("a key of another type", async () => {
      await fixture.redis.hset(counter, "a", "1");
      try {
        const keys = fixture.lock();
        const [kind, message] = await fixture.run(keys, acquireOf(requester(1)));
        expect([kind, message]).toEqual(["error", expect.stringMatching(`^WRONGTYPE .*${counter}$`)]);
        expect(await fixture.redis.exists(...keys)).toBe(0);
      } finally {
        await fixture.redis.del(counter);
      }
    });

    test("is also needed for a handover: the waiter stays queued, and gets the lock once the counter is right", async () => {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1));
      await fixture.queue(keys, requester(2));
      await fixture.redis.set(counter, "abc");
      const answer = await fixture.run(keys, releaseOf(requester(1)));
      expect(answer).toEqual(["error", expect.stringMatching(`^COUNTER ${counter} `)]);
      expect(await fixture.redis.exists(keys[0])).toBe(0);
      expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2).member]);
      expect(await fixture.received(2)).toEqual([]);
      await fixture.redis.del(counter);
      await fixture.run(keys, releaseOf(requester(1)));
      expect(await fixture.holder(keys)).toBe(requester(2).token);
      expect(await fixture.received(2)).toHaveLength(1);
    });
  });

  test("counts if it is almost a day ahead", async () => {
    const ahead = (await serverMicros(fixture)) + dayMicros - 60_000_000;
    await fixture.redis.set(counter, ahead);
    expect((await fixture.grant(fixture.lock(), requester(1))).first).toBe(ahead + 1);
    await fixture.redis.del(counter);
  });

  test("is kept even if an operation of the call fails, before the grants or after them", async () => {
    const [broken, shared] = [fixture.lock(), fixture.lock()];
    await fixture.redis.lpush(broken[0], "a");
    await fixture.grant(shared, requester(5, { lockMode: "s1/2" }));
    const fails = [broken, acquireOf(requester(1))] as const;
    const answers = await fixture.batch([
      fails,
      [fixture.lock(), acquireOf(requester(1), { fencingCount: 3 })],
      fails,
      [fixture.lock(), acquireOf(requester(1))],
      [shared, acquireOf(requester(1, { lockMode: "r" }))], // another kind of lock
      [broken, ["nonsense", "1", "2", "3"]],
    ]);
    expect(answers.map(([status]) => status)).toEqual(["error", 1, "error", 1, "error", "error"]);
    expect(await fixture.counter()).toBe(answers[3]?.[2]);
    expect(Number(answers[3]?.[1])).toBe(Number(answers[1]?.[2]) + 1);
    expect((await fixture.grant(fixture.lock(), requester(1))).first).toBeGreaterThan(await lastOf(answers));
  });

  test("is kept if a handover was numbered and failed, so that its number is not used again", async () => {
    await fixture.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(fixture.server.client({ username: "mute", password: "any" }));
    const [keys, other] = [fixture.lock(), fixture.lock()];
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    const [granted, failed] = await fixture.batch(
      [
        [other, acquireOf(requester(1), { fencingCount: 5 })],
        [keys, releaseOf(requester(1))],
      ],
      { connection: mute },
    );
    expect(failed?.[0]).toBe("error");
    const last = Number(granted?.[2]);
    expect(await fixture.counter()).toBe(last + 1);
    expect((await fixture.grant(fixture.lock(), requester(1))).first).toBeGreaterThan(last + 1);
  });
});

function numbersOf(answers: readonly ScriptReply[]): [number, number][] {
  return answers.map(([, first, last]) => [Number(first), Number(last)]);
}

async function lastOf(answers: readonly ScriptReply[]): Promise<number> {
  return Math.max(...numbersOf(answers.filter(([status]) => status === 1)).flat());
}

async function serverMicros({ redis }: ScriptFixture): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}
