import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  requester,
  ScriptFixture,
  type ScriptReply,
  type Requester,
} from "../../../../support/script-fixture.ts";

const semaphore = { lockMode: "s1/3" };
const heavy = { lockMode: "s3/3" };
const reader = { lockMode: "r" };
const writer = { lockMode: "w" };

/** How long the lock key and the metadata outlast the last holder, in ms. */
const pastLastHolder = `
local time = redis.call('TIME')
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2] - math.floor(time[1] * 1000 + time[2] / 1000)
return { redis.call('PTTL', KEYS[1]) - last, redis.call('PTTL', KEYS[3]) - last }`;

onRedis("a grant of a shared lock", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(2), fixture.listen(3), fixture.listen(4, "p")]);
  });
  afterAll(() => fixture.close());

  test("stores the holder with its expiry, its number and weight, the sum, and the kind", async () => {
    const keys = fixture.lock();
    const who = requester(1, { lockMode: "s2/3" });
    const before = Date.now();
    const { first, last } = await fixture.grant(keys, who, { ttlMs: 30_000, fencingCount: 5 });
    expect(last).toBe(first + 4);
    const score = Number(await fixture.redis.zscore(keys[0], who.token));
    expect(score - before).toBeGreaterThan(29_990);
    expect(score - before).toBeLessThan(32_000);
    expect(await fixture.redis.hgetall(keys[2])).toEqual({
      used: "2",
      [`h${who.token}`]: `${first} 2 5`,
      kind: "semaphore",
      limit: "3",
    });
    expect(await fixture.counter()).toBe(last);
    for (const key of [keys[0], keys[2]]) {
      expect(await fixture.redis.pttl(key)).toBeGreaterThan(30_000);
      expect(await fixture.redis.pttl(key)).toBeLessThanOrEqual(32_000);
    }
  });

  test("and every extension keep the holders' metadata for about a second longer than the last holder", async () => {
    const keys = fixture.lock();
    const [first, second, third] = [1, 2, 3].map((attempt) => requester(attempt, semaphore)) as Requester[];
    const steps = [
      ["granted", () => fixture.grant(keys, first as Requester, { ttlMs: 10_000 })],
      ["granted for longer", () => fixture.grant(keys, second as Requester, { ttlMs: 30_000 })],
      ["extended", () => fixture.run(keys, ["extend", (first as Requester).token, "60000", "", ""])],
      ["granted within the second", () => fixture.grant(keys, third as Requester, { ttlMs: 60_000 })],
      ["shorter", () => fixture.run(keys, ["extend", (second as Requester).token, "20000", "", ""])],
    ] as const;
    for (const [what, step] of steps) {
      await step();
      const [K, info] = (await fixture.redis.eval(pastLastHolder, 3, ...keys)) as number[];
      expect(K, what).toBeGreaterThan(900);
      expect(info, what).toBeGreaterThan(900);
    }
  });

  test("goes to a reader whose ticket is earlier than that of the first waiter", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, reader));
    await fixture.queue(keys, requester(2, { ...writer, ticket: 9 }));
    const [status] = await fixture.queue(keys, requester(3, { ...reader, ticket: 5 }));
    expect(status).toBe(1);
  });

  test("is made while the weights stay within the limit, each with a larger number", async () => {
    const keys = fixture.lock();
    const numbers: number[] = [];
    for (const attempt of [1, 2, 3]) {
      numbers.push((await fixture.grant(keys, requester(attempt, semaphore))).first);
    }
    expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
    expect(new Set(numbers).size).toBe(3);
    expect(await fixture.run(keys, acquireOf(requester(4, semaphore)))).toMatchObject({ 0: 0, 2: -1 });
    expect(await fixture.redis.zcard(keys[0])).toBe(3);
  });

  test("is refused with the holder that expires first, and its remaining time", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, semaphore), { ttlMs: 60_000 });
    await fixture.grant(keys, requester(2, semaphore), { ttlMs: 20_000 });
    const [status, left, position, by, run] = await fixture.queue(keys, requester(3, heavy));
    expect([status, position, by]).toEqual([0, 0, requester(2, semaphore).token]);
    expect(Number(left)).toBeGreaterThan(19_000);
    expect(Number(left)).toBeLessThanOrEqual(20_000);
    expect(String(run)).toMatch(/^[\da-f]{40}$/);
  });

  test("replaces expired holders at the next request, and no others", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, { lockMode: "s2/3" }));
    await fixture.grant(keys, requester(2, semaphore));
    await expire(keys[0], requester(1, { lockMode: "s2/3" }));
    await fixture.grant(keys, requester(3, { lockMode: "s2/3" }));
    expect(await tokens(keys[0])).toEqual([
      requester(2, semaphore).token,
      requester(3, { lockMode: "s2/3" }).token,
    ]);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("3");
    expect(await fixture.redis.hkeys(keys[2])).toHaveLength(5); // three of them are the kind, the limit and the sum
  });

  test("is not given to a try before the waiters, although there is room", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, semaphore));
    await fixture.queue(keys, requester(2, heavy));
    expect(await fixture.run(keys, acquireOf(requester(3, semaphore)))).toMatchObject({ 0: 0, 2: -1 });
    expect(await fixture.queue(keys, requester(4, semaphore))).toMatchObject({ 0: 0, 2: 1 });
    expect(await tokens(keys[0])).toEqual([requester(1, semaphore).token]);
  });

  test("by a release goes to all readers at the head, up to the first writer, each by its own channel", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    const readers = [requester(2, reader), requester(3, reader), requester(4, { ...reader, kind: "p" })];
    for (const who of [...readers, requester(5, writer), requester(6, reader)]) {
      await fixture.queue(keys, who);
    }
    expect(await fixture.run(keys, ["release", requester(1, writer).token, "", "1"])).toMatchObject({
      0: 1,
      1: 0,
    });
    expect((await tokens(keys[0])).toSorted()).toEqual(readers.map(({ token }) => token).toSorted());
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([
      requester(5, writer).member,
      requester(6, reader).member,
    ]);
    const numbers: number[] = [];
    for (const [index, client] of [2, 3, 4].entries()) {
      const [message, ...more] = await fixture.received(client);
      const [word, token, first, last] = String(message).split(" ");
      expect([word, token, last, more]).toEqual(["grant", readers[index]?.token, first, []]);
      numbers.push(Number(first));
    }
    expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
  });

  test("is awaited in a queue with a bound, in which an existing entry stays", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    const enqueue = (who: Requester): Promise<ScriptReply> =>
      fixture.run(keys, acquireOf(who, { wait: "1" }), { bound: 1 });
    expect((await enqueue(requester(2, reader)))[0]).toBe(0);
    expect(await enqueue(requester(3, reader))).toEqual([2]);
    expect((await enqueue(requester(2, reader)))[2]).toBe(0);
    expect(await fixture.redis.zrange(keys[1], "0", "-1")).toEqual([requester(2, reader).member]);
    for (const [index, wait] of (["3", "4"] as const).entries()) {
      // a request that releases a grant in the same call
      const answer = await fixture.run(keys, acquireOf(requester(4 + index, reader), { wait }), { bound: 1 });
      expect([answer[0], answer[2], answer[4] === ""]).toEqual([0, 1 + index, wait === "4"]);
    }
  });

  test("of a token with the same random part but another client or ticket is another holder", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1, semaphore));
    const clones = [requester(1, { ...semaphore, client: 9 }), requester(1, { ...semaphore, ticket: 77 })];
    for (const clone of clones) {
      const { first: number } = await fixture.grant(keys, clone);
      expect(number).toBeGreaterThan(first);
    }
    expect(await fixture.redis.hget(keys[2], "used")).toBe("3");
    expect(await fixture.run(keys, ["release", requester(1, semaphore).token, "", "1"])).toMatchObject({
      0: 1,
    });
    expect((await tokens(keys[0])).sort()).toEqual(clones.map(({ token }) => token).sort());
  });

  test("is repeated with a later expiry, never with an earlier one", async () => {
    const keys = fixture.lock();
    const who = requester(1, semaphore);
    await fixture.grant(keys, who, { ttlMs: 60_000 });
    const score = await fixture.redis.zscore(keys[0], who.token);
    await fixture.grant(keys, who, { ttlMs: 10_000 });
    expect(await fixture.redis.zscore(keys[0], who.token)).toBe(score);
    await fixture.run(keys, ["extend", who.token, "90000", "", ""]);
    expect(Number(await fixture.redis.zscore(keys[0], who.token))).toBeGreaterThan(Number(score) + 20_000);
  });

  test("for a token that is queued twice, because its channel changed, is made once, with a notification to retry", async () => {
    const keys = fixture.lock();
    const [before, after] = [requester(21, reader), requester(21, { ...reader, kind: "p" })];
    await fixture.listen(21, "s");
    await fixture.listen(21, "p");
    await fixture.grant(keys, requester(1, writer));
    await fixture.queue(keys, before);
    await fixture.queue(keys, after);
    await fixture.run(keys, ["release", requester(1, writer).token, "", "1"]);
    expect(await tokens(keys[0])).toEqual([before.token]);
    expect(await fixture.redis.hget(keys[2], "used")).toBe("1");
    expect(await fixture.redis.exists(keys[1])).toBe(0);
    expect((await fixture.received(21)).map((text) => text.split(" ")[0])).toEqual(["grant", "retry"]);
  });

  test("is not made past the limit for a repeat after its deadline", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1, writer));
    const late = requester(2, { ...writer, deadline: 1 });
    expect((await fixture.queue(keys, late))[0]).toBe(0);
    expect((await fixture.queue(keys, late))[0]).toBe(0);
    expect(await tokens(keys[0])).toEqual([requester(1, writer).token]);
  });

  async function expire(K: string, { token }: Requester): Promise<void> {
    await fixture.redis.zadd(K, "XX", 1, token);
  }

  async function tokens(K: string): Promise<string[]> {
    return fixture.redis.zrange(K, "0", "-1");
  }
});
