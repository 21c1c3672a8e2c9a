import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  asker,
  ScriptStage,
  type Answer,
  type Asker,
} from "../../../../support/script-fixture.ts";

const semaphore = { share: "s1/3" };
const heavy = { share: "s3/3" };
const reader = { share: "r" };
const writer = { share: "w" };

/** For how long K and the info are there when the last holder's time is over, in ms. */
const leftBehindLast = `
local time = redis.call('TIME')
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] - math.floor(time[1] * 1000 + time[2] / 1000)
return { redis.call('PTTL', KEYS[1]) - last, redis.call('PTTL', KEYS[3]) - last }`;

onRedis("a grant of a lock that several may hold", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await Promise.all([stage.listen(2), stage.listen(3), stage.listen(4, "p")]);
  });
  afterAll(() => stage.close());

  test("writes the holder with its expiry, its number and weight, the sum, and what it was granted as", async () => {
    const keys = stage.lock();
    const who = asker(1, { share: "s2/3" });
    const before = Date.now();
    const { first, last } = await stage.grant(keys, who, { ttlMs: 30_000, want: 5 });
    expect(last).toBe(first + 4);
    const score = Number(await stage.redis.zscore(keys[0], who.token));
    expect(score - before).toBeGreaterThan(29_990);
    expect(score - before).toBeLessThan(32_000);
    expect(await stage.redis.hgetall(keys[2])).toEqual({
      used: "2",
      [`h${who.token}`]: `${first} 2 5`,
      kind: "semaphore",
      limit: "3",
    });
    expect(await stage.counter()).toBe(last);
    for (const key of [keys[0], keys[2]]) {
      expect(await stage.redis.pttl(key)).toBeGreaterThan(30_000);
      expect(await stage.redis.pttl(key)).toBeLessThanOrEqual(32_000);
    }
  });

  test("and every extension keeps what is said of the holders for about a second longer than the last of them", async () => {
    const keys = stage.lock();
    const [first, second, third] = [1, 2, 3].map((attempt) => asker(attempt, semaphore)) as Asker[];
    const steps = [
      ["granted", () => stage.grant(keys, first as Asker, { ttlMs: 10_000 })],
      ["granted for longer", () => stage.grant(keys, second as Asker, { ttlMs: 30_000 })],
      ["extended", () => stage.ask(keys, ["extend", (first as Asker).token, "60000", "", ""])],
      ["granted within the second", () => stage.grant(keys, third as Asker, { ttlMs: 60_000 })],
      ["shorter", () => stage.ask(keys, ["extend", (second as Asker).token, "20000", "", ""])],
    ] as const;
    for (const [what, step] of steps) {
      await step();
      const [K, info] = (await stage.redis.eval(leftBehindLast, 3, ...keys)) as number[];
      expect(K, what).toBeGreaterThan(900);
      expect(info, what).toBeGreaterThan(900);
    }
  });

  test("goes to a reader whose ticket is earlier than that of the first waiter", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, reader));
    await stage.queue(keys, asker(2, { ...writer, ticket: 9 }));
    const [status] = await stage.queue(keys, asker(3, { ...reader, ticket: 5 }));
    expect(status).toBe(1);
  });

  test("is made while the weights stay within the limit, each with a greater number", async () => {
    const keys = stage.lock();
    const numbers: number[] = [];
    for (const attempt of [1, 2, 3]) {
      numbers.push((await stage.grant(keys, asker(attempt, semaphore))).first);
    }
    expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
    expect(new Set(numbers).size).toBe(3);
    expect(await stage.ask(keys, acquireOf(asker(4, semaphore)))).toMatchObject({ 0: 0, 2: -1 });
    expect(await stage.redis.zcard(keys[0])).toBe(3);
  });

  test("held: by whom the first expiry is, and how long that lasts", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, semaphore), { ttlMs: 60_000 });
    await stage.grant(keys, asker(2, semaphore), { ttlMs: 20_000 });
    const [status, left, position, by, run] = await stage.queue(keys, asker(3, heavy));
    expect([status, position, by]).toEqual([0, 0, asker(2, semaphore).token]);
    expect(Number(left)).toBeGreaterThan(19_000);
    expect(Number(left)).toBeLessThanOrEqual(20_000);
    expect(String(run)).toMatch(/^[\da-f]{40}$/);
  });

  test("holders whose time is over make room for the next who asks, and only they", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/3" }));
    await stage.grant(keys, asker(2, semaphore));
    await expire(keys[0], asker(1, { share: "s2/3" }));
    await stage.grant(keys, asker(3, { share: "s2/3" }));
    expect(await tokens(keys[0])).toEqual([asker(2, semaphore).token, asker(3, { share: "s2/3" }).token]);
    expect(await stage.redis.hget(keys[2], "used")).toBe("3");
    expect(await stage.redis.hkeys(keys[2])).toHaveLength(5); // with the kind, the limit and the sum
  });

  test("a try is not granted past who waits, though there is room for it", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, semaphore));
    await stage.queue(keys, asker(2, heavy));
    expect(await stage.ask(keys, acquireOf(asker(3, semaphore)))).toMatchObject({ 0: 0, 2: -1 });
    expect(await stage.queue(keys, asker(4, semaphore))).toMatchObject({ 0: 0, 2: 1 });
    expect(await tokens(keys[0])).toEqual([asker(1, semaphore).token]);
  });

  test("at a release all readers at the head are granted, up to the first writer, each by its own channel", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    const readers = [asker(2, reader), asker(3, reader), asker(4, { ...reader, kind: "p" })];
    for (const who of [...readers, asker(5, writer), asker(6, reader)]) {
      await stage.queue(keys, who);
    }
    expect(await stage.ask(keys, ["release", asker(1, writer).token, "", "1"])).toMatchObject({ 0: 1, 1: 0 });
    expect((await tokens(keys[0])).toSorted()).toEqual(readers.map(({ token }) => token).toSorted());
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([
      asker(5, writer).member,
      asker(6, reader).member,
    ]);
    const numbers: number[] = [];
    for (const [index, client] of [2, 3, 4].entries()) {
      const [message, ...more] = await stage.heard(client);
      const [word, token, first, last] = String(message).split(" ");
      expect([word, token, last, more]).toEqual(["grant", readers[index]?.token, first, []]);
      numbers.push(Number(first));
    }
    expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
  });

  test("waiters whose processes are gone or whose time is over are passed over", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    const gone = asker(9, { ...writer, ticket: 1 });
    for (const who of [gone, asker(2, { ...writer, deadline: 1 }), asker(3, reader)]) {
      await stage.queue(keys, who);
    }
    await stage.ask(keys, ["release", asker(1, writer).token, "", "1"]);
    expect(await tokens(keys[0])).toEqual([asker(3, reader).token]);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    expect(await stage.redis.hget(keys[2], "used")).toBe("1");
    expect(await stage.heard(2)).toEqual([]);
    expect(await stage.heard(3)).toHaveLength(1);
  });

  test("at 64 dead waiters the caller is asked to come again, and then the living are served", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    for (let dead = 100; dead < 170; dead += 1) {
      await stage.redis.zadd(keys[1], dead, asker(dead, writer).member);
    }
    await stage.redis.zadd(keys[1], 500, asker(2, { ...writer, ticket: 500 }).member);
    const release = ["release", asker(1, writer).token, "", "1"];
    expect(await stage.ask(keys, release)).toMatchObject({ 0: 1, 1: 1 });
    expect(await stage.redis.zcard(keys[1])).toBe(7);
    expect(await stage.ask(keys, release)).toMatchObject({ 0: 0, 1: 0 });
    expect(await tokens(keys[0])).toEqual([asker(2, { ...writer, ticket: 500 }).token]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("at 64 dead waiters who asks is told to repeat, and is then granted", async () => {
    const keys = stage.lock();
    for (let dead = 100; dead < 170; dead += 1) {
      await stage.redis.zadd(keys[1], dead, asker(dead, writer).member);
    }
    expect(await stage.ask(keys, acquireOf(asker(1, writer)))).toEqual([3]);
    expect(await stage.ask(keys, acquireOf(asker(1, writer)))).toMatchObject({ 0: 1 });
  });

  test("who is granted with many others goes on until all are served that there is room for", async () => {
    const keys = stage.lock();
    const many = { share: "s1/200" };
    const own = asker(2, { ...many, ticket: 150 });
    await stage.grant(keys, asker(1, { share: "s200/200" }));
    for (let place = 100; place < 200; place += 1) {
      const waiter = place === 150 ? own : asker(place === 199 ? 3 : place, { ...many, ticket: place });
      await stage.redis.zadd(keys[1], place, waiter.member); // of nobody who lives, but for two
    }
    await expire(keys[0], asker(1, { share: "s200/200" }));
    expect(await stage.ask(keys, acquireOf(own, { wait: "1" }))).toEqual([3]);
    expect(await tokens(keys[0])).toEqual([own.token]);
    expect(await stage.ask(keys, acquireOf(own, { wait: "1" }))).toMatchObject({ 0: 1, 3: own.token });
    expect(await stage.redis.zcard(keys[0])).toBe(2);
    expect(await stage.redis.exists(keys[1])).toBe(0);
    expect([await stage.heard(2), await stage.heard(3)].map(({ length }) => length)).toEqual([0, 1]);
  });

  test("at most 64 expired holders are dropped in one call", async () => {
    const keys = stage.lock();
    const many = { share: "s1/70" };
    const holders = Array.from({ length: 70 }, (_, index) => asker(100 + index, many));
    for (const holder of holders) {
      await stage.grant(keys, holder);
    }
    for (const holder of holders) {
      await expire(keys[0], holder);
    }
    await stage.ask(keys, ["verify", asker(1, many).token]);
    expect(await stage.redis.zcard(keys[0])).toBe(6);
    expect(await stage.redis.hget(keys[2], "used")).toBe("6");
    await stage.ask(keys, ["verify", asker(1, many).token]);
    expect(await stage.redis.exists(keys[0], keys[2])).toBe(0);
  });

  test("who finds more than 64 expired holders is told to repeat, and not that they hold it", async () => {
    const keys = stage.lock();
    const readers = Array.from({ length: 70 }, (_, index) => asker(100 + index, reader));
    for (const holder of readers) {
      await stage.grant(keys, holder);
    }
    for (const holder of readers) {
      await expire(keys[0], holder);
    }
    expect(await stage.ask(keys, acquireOf(asker(1, writer)))).toEqual([3]);
    expect(await stage.ask(keys, acquireOf(asker(1, writer)))).toMatchObject({ 0: 1 });
  });

  test("the queue has a bound, and who stands there already keeps its place", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    const ask = (who: Asker): Promise<Answer> => stage.ask(keys, acquireOf(who, { wait: "1" }), { bound: 1 });
    expect((await ask(asker(2, reader)))[0]).toBe(0);
    expect(await ask(asker(3, reader))).toEqual([2]);
    expect((await ask(asker(2, reader)))[2]).toBe(0);
    expect(await stage.redis.zrange(keys[1], "0", "-1")).toEqual([asker(2, reader).member]);
    for (const [index, wait] of (["3", "4"] as const).entries()) {
      // who gives a grant up in the same call
      const answer = await stage.ask(keys, acquireOf(asker(4 + index, reader), { wait }), { bound: 1 });
      expect([answer[0], answer[2], answer[4] === ""]).toEqual([0, 1 + index, wait === "4"]);
    }
  });

  test("the same random part of another client's token, or with another ticket, is another holder", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, semaphore));
    const clones = [asker(1, { ...semaphore, client: 9 }), asker(1, { ...semaphore, ticket: 77 })];
    for (const clone of clones) {
      const { first: number } = await stage.grant(keys, clone);
      expect(number).toBeGreaterThan(first);
    }
    expect(await stage.redis.hget(keys[2], "used")).toBe("3");
    expect(await stage.ask(keys, ["release", asker(1, semaphore).token, "", "1"])).toMatchObject({ 0: 1 });
    expect((await tokens(keys[0])).sort()).toEqual(clones.map(({ token }) => token).sort());
  });

  test("a repeat raises the expiry and never brings it forward", async () => {
    const keys = stage.lock();
    const who = asker(1, semaphore);
    await stage.grant(keys, who, { ttlMs: 60_000 });
    const score = await stage.redis.zscore(keys[0], who.token);
    await stage.grant(keys, who, { ttlMs: 10_000 });
    expect(await stage.redis.zscore(keys[0], who.token)).toBe(score);
    await stage.ask(keys, ["extend", who.token, "90000", "", ""]);
    expect(Number(await stage.redis.zscore(keys[0], who.token))).toBeGreaterThan(Number(score) + 20_000);
  });

  test("a token that stands in the queue twice, as its channel changed, is granted once and told to ask again", async () => {
    const keys = stage.lock();
    const [before, after] = [asker(21, reader), asker(21, { ...reader, kind: "p" })];
    await stage.listen(21, "s");
    await stage.listen(21, "p");
    await stage.grant(keys, asker(1, writer));
    await stage.queue(keys, before);
    await stage.queue(keys, after);
    await stage.ask(keys, ["release", asker(1, writer).token, "", "1"]);
    expect(await tokens(keys[0])).toEqual([before.token]);
    expect(await stage.redis.hget(keys[2], "used")).toBe("1");
    expect(await stage.redis.exists(keys[1])).toBe(0);
    expect((await stage.heard(21)).map((text) => text.split(" ")[0])).toEqual(["grant", "retry"]);
  });

  test("who asks again after its deadline is not granted past the limit", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, writer));
    const late = asker(2, { ...writer, deadline: 1 });
    expect((await stage.queue(keys, late))[0]).toBe(0);
    expect((await stage.queue(keys, late))[0]).toBe(0);
    expect(await tokens(keys[0])).toEqual([asker(1, writer).token]);
  });

  async function expire(K: string, { token }: Asker): Promise<void> {
    await stage.redis.zadd(K, "XX", 1, token);
  }

  async function tokens(K: string): Promise<string[]> {
    return stage.redis.zrange(K, "0", "-1");
  }
});
