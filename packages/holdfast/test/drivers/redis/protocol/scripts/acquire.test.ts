import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { counterKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("acquire", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
  });
  afterAll(() => fixture.close());

  test("a free lock is granted: its key has the token and the number for the TTL, and the number is the server's time", async () => {
    const keys = fixture.lock();
    const us = requester(1);
    const before = await serverMicros();
    const [status, first, last, token] = await fixture.run(keys, acquireOf(us, { ttlMs: 30_000 }));
    expect([status, token, last]).toEqual([1, us.token, first]);
    expect(first).toBeGreaterThanOrEqual(before);
    expect(first).toBeLessThanOrEqual(await serverMicros());
    expect(await fixture.redis.get(keys[0])).toBe(`${us.token} ${String(first)} 1`);
    expect(near(await fixture.redis.pttl(keys[0]), 30_000)).toBe(true);
  });

  test("a repeat gets the same grant with the same numbers", async () => {
    const keys = fixture.lock();
    const us = requester(1);
    const answer = await fixture.run(keys, acquireOf(us, { fencingCount: 5 }));
    expect(await fixture.run(keys, acquireOf(us, { fencingCount: 5 }))).toEqual(answer);
  });

  test("a repeat with a shorter TTL never shortens the TTL, and a repeat with a longer one raises it", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
    await fixture.grant(keys, requester(1), { ttlMs: 500 });
    expect(near(await fixture.redis.pttl(keys[0]), 30_000)).toBe(true);
    await fixture.grant(keys, requester(1), { ttlMs: 50_000 });
    expect(near(await fixture.redis.pttl(keys[0]), 50_000)).toBe(true);
  });

  test("a repeat gives its TTL to a key that was made persistent", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.redis.persist(keys[0]);
    await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
    expect(await fixture.redis.pttl(keys[0])).toBeGreaterThan(29_000);
  });

  test("a token with the same random part but another client or ticket is another token", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    for (const clone of [requester(1, { client: 8 }), requester(1, { ticket: 11 })]) {
      for (const wait of ["0", "1", "2"] as const) {
        expect(await fixture.run(keys, acquireOf(clone, { wait }))).toMatchObject({
          0: 0,
          3: requester(1).token,
        });
      }
    }
    expect(await fixture.holder(keys)).toBe(requester(1).token);
  });

  test("a repeat after the counter was lost gets the same numbers, because the lock key has them", async () => {
    const keys = fixture.lock();
    const granted = await fixture.grant(keys, requester(1), { fencingCount: 5 });
    await fixture.redis.del(counterKey());
    expect(await fixture.grant(keys, requester(1), { fencingCount: 5 })).toEqual(granted);
  });

  test("a repeat that requests more or fewer numbers gets those of the first request", async () => {
    const keys = fixture.lock();
    const granted = await fixture.grant(keys, requester(1), { fencingCount: 5 });
    for (const fencingCount of [1, 17]) {
      expect(await fixture.grant(keys, requester(1), { fencingCount })).toEqual(granted);
    }
  });

  test("a token that is a prefix or an extension of the holder's is another token", async () => {
    const keys = fixture.lock();
    for (const ticket of [123, 12_345]) {
      await fixture.grant(keys, requester(1, { ticket }));
      const answer = await fixture.run(keys, acquireOf(requester(1, { ticket: 1_234 })));
      expect([answer[0], answer[3]]).toEqual([0, requester(1, { ticket }).token]);
      await fixture.redis.del(keys[0]);
    }
  });

  test("a try on a held lock gets the holder and the remaining TTL, and leaves no queue entry", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 30_000 });
    const [status, left, position, holder, runId] = await fixture.run(keys, acquireOf(requester(2)));
    expect([status, position, holder, runId]).toEqual([0, -1, requester(1).token, ""]);
    expect(near(Number(left), 30_000)).toBe(true);
    expect(await fixture.redis.exists(keys[1])).toBe(0);
  });

  test("a waiter gets the server's run if it requests the run", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    const queued = await fixture.run(keys, acquireOf(requester(2), { wait: "1" }));
    expect(await fixture.redis.info("server")).toContain(`run_id:${String(queued[4])}\r\n`);
    expect((await fixture.queue(keys, requester(3), { wait: "3" }))[4]).toBe(queued[4]);
    for (const wait of ["2", "4"] as const) {
      const quiet = await fixture.queue(keys, requester(2), { wait });
      expect([quiet[0], quiet[2], quiet[4]]).toEqual([0, 0, ""]);
    }
  });

  test("a lock of another client library excludes this one, and its value is reported", async () => {
    const keys = fixture.lock();
    await fixture.redis.set(keys[0], "somebody else's");
    expect((await fixture.queue(keys, requester(2))).slice(0, 4)).toEqual([0, -1, 0, "somebody else's"]);
    expect((await fixture.run(keys, acquireOf(requester(3)))).slice(0, 4)).toEqual([
      0,
      -1,
      -1,
      "somebody else's",
    ]);
  });

  test("a repeat that finds a grant by notification writes the owner's metadata", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await fixture.queue(keys, requester(1));
    await fixture.run(keys, ["release", requester(9).token, "", "1"]);
    await fixture.received(1);
    await fixture.queue(keys, requester(1), { metadata: '["owner","a worker"]' });
    expect(await fixture.redis.hget(keys[2], "owner")).toBe("a worker");
    expect(await fixture.run(keys, ["release", requester(1).token, "", "1"])).toEqual([1, 0, ""]);
    expect(await fixture.redis.exists(...keys)).toBe(0);
  });

  test("an owner's metadata is stored beside the lock key, with the same TTL", async () => {
    const keys = fixture.lock();
    const metadata = JSON.stringify(["owner", "a worker", "reason", 'a "quote" / ü']);
    await fixture.grant(keys, requester(1), { ttlMs: 20_000, metadata });
    const kept = { token: requester(1).token, owner: "a worker", reason: 'a "quote" / ü' };
    expect(await fixture.redis.hgetall(keys[2])).toEqual(kept);
    expect(near(await fixture.redis.pttl(keys[2]), 20_000)).toBe(true);
  });

  test("a key of another type is refused and not touched", async () => {
    const keys = fixture.lock();
    await fixture.redis.hset(keys[0], "a", "1");
    for (const wait of ["0", "1", "2"] as const) {
      const [kind, message] = await fixture.run(keys, acquireOf(requester(1), { wait }));
      expect([kind, message]).toEqual(["error", expect.stringMatching(/^WRONGTYPE /)]);
    }
    expect(await fixture.redis.hgetall(keys[0])).toEqual({ a: "1" });
    expect(await fixture.redis.exists(keys[1], keys[2])).toBe(0);
  });

  test("an error of one key does not affect another key", async () => {
    const [one, other, third] = [fixture.lock(), fixture.lock(), fixture.lock()];
    await fixture.redis.lpush(other[0], "a");
    const answers = await fixture.batch(
      [one, other, third].map((keys) => [keys, acquireOf(requester(1))] as const),
    );
    expect(answers.map(([status]) => status)).toEqual([1, "error", 1]);
  });

  test.each([
    ["exists", ""],
    ["get", ""],
    ["set", ""],
    ["hset", '["owner","a"]'],
    ["pexpire", '["owner","a"]'],
  ])(
    "a user without the right to %s gets an error and no grant, if the grant needs the command",
    async (command, metadata) => {
      const keys = fixture.lock();
      await fixture.redis.call("ACL", "SETUSER", "default", `-${command}`);
      try {
        const answer = await fixture.run(keys, acquireOf(requester(1), { metadata }));
        expect(answer).toEqual(["error", expect.stringMatching(/^NOPERM |can't run this command/)]);
      } finally {
        await fixture.redis.call("ACL", "SETUSER", "default", `+${command}`);
      }
      expect(await fixture.holder(keys)).toBe(null);
      expect((await fixture.run(keys, acquireOf(requester(2))))[0]).toBe(1);
    },
  );

  test("a released lock leaves only the server's counter, which stays", async () => {
    await fixture.redis.flushall();
    for (const [who, metadata] of [
      [requester(1), ""],
      [requester(2), '["owner","a"]'],
    ] as const) {
      const keys = fixture.lock();
      await fixture.grant(keys, who, { metadata });
      await fixture.run(keys, ["release", who.token, who.entryTail, "1"]);
    }
    expect(await fixture.redis.keys("*")).toEqual([counterKey()]);
    expect(await fixture.redis.pttl(counterKey())).toBe(-1);
  });

  test("besides the lock key, only keys in the library's own name space are written", async () => {
    await fixture.redis.flushall();
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { metadata: '["owner","a"]' });
    await fixture.queue(keys, requester(2));
    const written = await fixture.redis.keys("*");
    expect(written.toSorted()).toEqual([counterKey(), ...keys].toSorted());
    expect(written.filter((key) => key !== keys[0]).every((key) => key.startsWith("holdfast:"))).toBe(true);
  });

  async function serverMicros(): Promise<number> {
    const [seconds, micros] = await fixture.redis.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }
});

function near(ms: number, wanted: number): boolean {
  return ms <= wanted && ms > wanted - 900;
}
