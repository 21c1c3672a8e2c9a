import { afterAll, beforeAll, expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { scanScript } from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import {
  acquireOf,
  requester,
  id,
  ScriptFixture,
  type ScriptReply,
} from "../../../../support/script-fixture.ts";

const ttlMs = "60000";
/** Late enough that no request of a test comes too late. */
const latest = "9999999999999";

function countDown(attempt: number, count: number, known = ""): string[] {
  return ["countDown", requester(attempt).token, String(count), ttlMs, known, latest];
}

function waitLatch(waiter: number, count: number, kind = "s", client = waiter): string[] {
  return ["waitLatch", requester(waiter, { client }).token, String(count), ttlMs, "", latest, kind];
}

/** When the two keys end, in ms of the server's clock. `null` stands for a missing key. */
const endsOf = `
local time = redis.call('TIME')
local function ends(key)
  local left = redis.call('PTTL', key)
  return left >= 0 and time[1] * 1000 + math.floor(time[2] / 1000) + left
end
return { ends(KEYS[1]), ends(KEYS[2]) }`;

onRedis("the script of latches", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await Promise.all([fixture.listen(1), fixture.listen(2, "p"), fixture.listen(3)]);
  });
  afterAll(() => fixture.close());

  const run = (keys: LockKeys, args: readonly string[]): Promise<ScriptReply> => fixture.run(keys, args);
  const stateOf = (keys: LockKeys): Promise<Record<string, string>> => fixture.redis.hgetall(keys[0]);

  test("an attempt counts once, and each reply has the remaining count", async () => {
    const keys = fixture.lock();
    const answers = [await run(keys, countDown(1, 3)), await run(keys, countDown(1, 3))];
    expect(answers.map(([status, left]) => [status, left])).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect((await run(keys, countDown(2, 3)))[1]).toBe(1);
    expect(answers[1]?.[2]).toBe(answers[0]?.[2]);
    expect(await stateOf(keys)).toMatchObject({ latch: "3", left: "1", born: answers[0]?.[2] });
  });

  test("a repeat of the last count and every later request get 0, and the attempts are no longer stored", async () => {
    const keys = fixture.lock();
    await run(keys, countDown(1, 2));
    const [, left, born] = await run(keys, countDown(2, 2));
    expect(left).toBe(0);
    const again = await Promise.all([2, 1, 3].map((attempt) => run(keys, countDown(attempt, 2))));
    expect(again.map((answer) => answer.slice(1, 3))).toEqual([0, 0, 0].map((none) => [none, born]));
    expect(Object.keys(await stateOf(keys)).toSorted()).toEqual(["born", "ends", "latch", "left"]);
  });

  test("all keys of the latch end with the TTL of the first request, open or not", async () => {
    const keys = fixture.lock();
    const expectEnds = async (wanted: readonly (number | null)[]): Promise<void> => {
      const found = (await fixture.redis.eval(endsOf, 2, keys[0], keys[1])) as (number | null)[];
      const isSame = found.map(
        (end, at) => end === wanted[at] || Math.abs((end ?? 0) - (wanted[at] ?? 0)) <= 2,
      );
      expect(isSame, `${found.join()} for ${wanted.join()}`).toEqual([true, true]);
    };
    await run(keys, waitLatch(1, 2));
    const first = Number((await stateOf(keys))["ends"]);
    await expectEnds([first, first]);
    await run(keys, ["waitLatch", requester(2).token, "2", "900000", "", latest, "s"]);
    await run(keys, ["countDown", requester(1).token, "2", "900000", "", latest]);
    await expectEnds([first, first]);
    await run(keys, ["countDown", requester(2).token, "2", "900000", "", latest]);
    await expectEnds([first, null]);
    expect(await fixture.redis.exists(...keys.slice(1))).toBe(0);
    await fixture.received(1);
    await fixture.received(2);
  });

  test("waiters are notified once for each process, after the state is written", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 2));
    await run(keys, waitLatch(11, 2, "s", 1));
    const [, , born] = await run(keys, waitLatch(2, 2, "p"));
    await run(keys, waitLatch(3, 2, "n")); // not a waiter
    await run(keys, countDown(1, 2));
    await run(keys, countDown(1, 2));
    expect([await fixture.received(1), await fixture.received(2)]).toEqual([[], []]);
    await run(keys, countDown(2, 2));
    const message = `latch-open ${String(born)} ${keys[0]}`;
    expect([await fixture.received(1), await fixture.received(2), await fixture.received(3)]).toEqual([
      [message],
      [message],
      [],
    ]);
    await run(keys, countDown(2, 2));
    expect(await fixture.received(1)).toEqual([]);
  });

  test("a waiter that has left is not notified", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 1));
    await run(keys, ["leaveLatchQueue", requester(1).token, "s"]);
    await run(keys, countDown(1, 1));
    expect(await fixture.received(1)).toEqual([]);
  });

  test("many waiters are notified in parts: the next request continues", async () => {
    const keys = fixture.lock();
    await fixture.batch(Array.from({ length: 600 }, (_, n) => [keys, waitLatch(1_000 + n, 1)]));
    await run(keys, waitLatch(1, 1));
    await fixture.redis.zadd(keys[1], "XX", 9e15, `${requester(1).token} s`); // the last waiter
    const [, , , , more] = await run(keys, countDown(1, 1));
    expect([more, await fixture.redis.zcard(keys[1])]).toEqual([1, 601 - 256]);
    expect((await run(keys, waitLatch(3, 1)))[4]).toBe(1);
    expect(await fixture.received(1)).toEqual([]);
    expect((await run(keys, countDown(1, 1)))[4]).toBe(0);
    expect(await fixture.received(1)).toHaveLength(1);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
  });

  test("a count is not refused if no waiter may be notified", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 1));
    await fixture.redis.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "+@all", "resetchannels");
    const mute = detectConnection(fixture.server.client({ username: "mute", password: "any" }));
    const [answer] = await fixture.batch([[keys, countDown(1, 1)]], { connection: mute });
    expect(answer?.slice(0, 2)).toEqual([1, 0]);
    expect((await stateOf(keys))["left"]).toBe("0");
  });

  test("a latch that was created anew is expired for callers that know the former one, and they touch nothing", async () => {
    const keys = fixture.lock();
    const [, , born] = await run(keys, countDown(1, 2));
    expect((await run(keys, countDown(1, 2, String(born))))[0]).toBe(1);
    await fixture.redis.del(keys[0]);
    expect(await run(keys, countDown(2, 2, String(born)))).toEqual([0]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
    await run(keys, countDown(3, 2));
    expect(await run(keys, countDown(2, 2, String(born)))).toEqual([0]);
    expect((await stateOf(keys))["left"]).toBe("1");
  });

  test("a latch that was deleted does not affect the next one", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 2));
    await fixture.redis.del(keys[0]);
    expect((await run(keys, countDown(1, 3))).slice(0, 2)).toEqual([1, 2]);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
  });

  test("a request that comes too late touches nothing", async () => {
    const keys = fixture.lock();
    for (const args of [countDown(1, 2), waitLatch(1, 2)]) {
      expect(await run(keys, args.with(5, "1700000000000"))).toEqual([3]);
    }
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("another count is refused", async () => {
    const keys = fixture.lock();
    await run(keys, countDown(1, 2));
    expect(await run(keys, countDown(2, 3))).toEqual(["error", "COUNTMISMATCH 2"]);
    expect(await run(keys, waitLatch(2, 3))).toEqual(["error", "COUNTMISMATCH 2"]);
    expect((await stateOf(keys))["left"]).toBe("1");
  });

  test("a key of another kind, held or with waiters, is not touched", async () => {
    const [mutex, shared, queued, others] = [fixture.lock(), fixture.lock(), fixture.lock(), fixture.lock()];
    await fixture.grant(mutex, requester(1));
    await fixture.grant(shared, requester(1, { lockMode: "r" }));
    await fixture.redis.zadd(queued[1], 2, requester(2).member);
    await fixture.redis.hset(others[0], "a", "1");
    for (const keys of [mutex, shared, queued, others]) {
      const before = await Promise.all(keys.map((key) => fixture.redis.dump(key)));
      for (const args of [countDown(1, 2), waitLatch(1, 2)]) {
        const [status, message] = await run(keys, args);
        expect([status, String(message)]).toEqual(["error", expect.stringMatching(/KINDMISMATCH|WRONGTYPE/)]);
      }
      expect(await Promise.all(keys.map((key) => fixture.redis.dump(key)))).toEqual(before);
    }
  });

  test("a latch is another kind for all other operations, and they touch nothing", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 2));
    const before = await stateOf(keys);
    for (const who of [requester(5), requester(5, { lockMode: "r" }), requester(5, { lockMode: "s1/2" })]) {
      for (const wait of ["0", "1", "2"] as const) {
        expect(await run(keys, acquireOf(who, { wait }))).toEqual(["error", "KINDMISMATCH latch"]);
      }
      expect(await run(keys, ["release", who.token, who.entryTail, "1"])).toEqual([0, 0, ""]);
      expect(await run(keys, ["extend", who.token, "20000", "", ""])).toBe(0);
      expect(await run(keys, ["verify", who.token])).toEqual([0]);
    }
    expect(await run(keys, ["setLimit", "2"])).toEqual(["error", "KINDMISMATCH latch"]);
    expect(await run(keys, ["breakGrant", "0", "s", "r"])).toEqual([0, 0]);
    expect(await stateOf(keys)).toEqual(before);
    expect(await fixture.redis.zcard(keys[1])).toBe(1);
  });

  test("a full queue is reported, and an existing queue entry is kept", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 1));
    expect(await fixture.run(keys, waitLatch(2, 1), { bound: 1 })).toEqual([2]);
    expect((await fixture.run(keys, waitLatch(1, 1), { bound: 1 }))[0]).toBe(1);
  });

  test("inspect reports the remaining count and the waiters, without those that stopped polling", async () => {
    const keys = fixture.lock();
    await run(keys, countDown(1, 4));
    await run(keys, waitLatch(3, 4));
    await fixture.redis.zadd(keys[1], 1_000, `${requester(4).token} s`);
    const answer = await run(keys, ["inspect"]);
    expect(answer.toSpliced(1, 1)).toEqual(["", "", "", [], 1, [`${requester(3).token} s`], "latch", 4, 3]);
    expect(Number(answer[1])).toBeLessThanOrEqual(60_000);
    expect(Number(answer[1])).toBeGreaterThan(0);
  });

  test("a scan finds the latch, and no other hash", async () => {
    const [keys, others] = [fixture.lock(), fixture.lock()];
    await run(keys, countDown(1, 4));
    await fixture.redis.hset(others[0], "a", "1");
    const [, found] = (await fixture.connection.run(scanScript, [], ["0", `${keys[0]}*`, "100000"])) as [
      string,
      string[],
    ];
    expect(found).toEqual([keys[0]]);
    const [, none] = (await fixture.connection.run(scanScript, [], ["0", `${others[0]}*`, "100000"])) as [
      string,
      string[],
    ];
    expect(none).toEqual([]);
  });

  test("with full memory a count is refused as a whole without a notification, but the last one opens the latch", async () => {
    const keys = fixture.lock();
    await run(keys, waitLatch(1, 3));
    await run(keys, countDown(1, 3));
    const before = await stateOf(keys);
    await fixture.redis.config("SET", "maxmemory", "1");
    try {
      expect(String((await run(keys, countDown(2, 3)))[1])).toMatch(/^OOM/);
      expect(String((await run(fixture.lock(), countDown(2, 3)))[1])).toMatch(/^OOM/);
      expect(await stateOf(keys)).toEqual(before);
      await fixture.redis.config("SET", "maxmemory", "0");
      expect((await run(keys, countDown(2, 3)))[1]).toBe(1);
      await fixture.redis.config("SET", "maxmemory", "1");
      expect(await fixture.received(1)).toEqual([]);
      expect((await run(keys, countDown(3, 3)))[1]).toBe(0);
      expect(await fixture.received(1)).toHaveLength(1);
    } finally {
      await fixture.redis.config("SET", "maxmemory", "0");
    }
  });

  test("an id has 32 hex digits, like the first part of a token that the script stores", async () => {
    const keys = fixture.lock();
    await run(keys, countDown(7, 2));
    expect(Object.keys(await stateOf(keys))).toContain(`a${id(7)}`);
  });
});
