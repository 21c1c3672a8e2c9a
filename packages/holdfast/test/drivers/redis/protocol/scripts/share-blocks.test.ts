import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, asker, ScriptStage } from "../../../../support/script-fixture.ts";

const one = { share: "s1/2" };

onRedis("a grant of a semaphore with several numbers", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
    await Promise.all([stage.listen(2), stage.listen(3)]);
  });
  afterAll(() => stage.close());

  test("a repeat is told the same block", async () => {
    const keys = stage.lock();
    const granted = await stage.grant(keys, asker(1, one), { want: 17 });
    expect(granted.last - granted.first).toBe(16);
    for (const wait of ["0", "1"] as const) {
      const [, first, last] = await stage.ask(keys, acquireOf(asker(1, one), { want: 17, wait }));
      expect([first, last]).toEqual([granted.first, granted.last]);
    }
    const other = await stage.grant(keys, asker(2, one), { want: 17 });
    expect(other.first).toBeGreaterThan(granted.last);
  });

  test("a message tells the whole block, and an extension by any of its numbers is one of the grant", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/2" }));
    const waiting = asker(2, { ...one, want: 17 });
    await stage.queue(keys, waiting, { want: 17 });
    await stage.ask(keys, ["release", asker(1, { share: "s2/2" }).token, "", "1"]);
    const [message = ""] = await stage.heard(2);
    const [, token, first, last] = message.split(" ");
    expect([token, Number(last) - Number(first)]).toEqual([waiting.token, 16]);
    for (const number of [first, last]) {
      expect(await stage.ask(keys, ["extend", waiting.token, "30000", "", String(number)])).toBe(1);
    }
    expect(await stage.ask(keys, ["extend", waiting.token, "30000", "", String(Number(first) - 1)])).toBe(0);
  });

  test("a release answers the grant of the next one of its client, and sends no message for it", async () => {
    const keys = stage.lock();
    const own = asker(3, { ...one, client: 2, want: 17, ttlMs: 9_000 });
    const { last } = await stage.grant(keys, asker(1, { ...one, client: 2 }));
    await stage.grant(keys, asker(4, one));
    await stage.queue(keys, own, { want: 17 });
    const answer = await stage.ask(keys, ["release", asker(1, { ...one, client: 2 }).token, "", "1"]);
    const [, , token, first, end, ttlMs] = answer;
    expect(answer.slice(0, 2)).toEqual([1, 0]);
    expect([token, Number(end) - Number(first), ttlMs]).toEqual([own.token, 16, 9_000]);
    expect(Number(first)).toBeGreaterThan(last);
    expect(await stage.heard(2)).toEqual([]);
    expect(await stage.ask(keys, ["verify", own.token])).toEqual([1, expect.any(Number), first]);
  });

  test("the second waiter that a release lets in is told by a message", async () => {
    const keys = stage.lock();
    const [next, last] = [asker(3, { ...one, client: 2 }), asker(4, { ...one, client: 2 })];
    await stage.grant(keys, asker(1, { share: "s2/2", client: 2 }));
    await stage.queue(keys, next);
    await stage.queue(keys, last);
    const [, , token] = await stage.ask(keys, [
      "release",
      asker(1, { share: "s2/2", client: 2 }).token,
      "",
      "1",
    ]);
    expect(token).toBe(next.token);
    expect(await stage.heard(2)).toEqual([expect.stringContaining(`grant ${last.token} `)]);
  });

  test("a release by another client, or sent again, sends a message", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "s2/2" }));
    await stage.queue(keys, asker(2, one));
    const release = ["release", asker(1, { share: "s2/2" }).token, "", "1"];
    expect(await stage.ask(keys, release)).toEqual([1, 0, asker(2, one).token]);
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.ask(keys, release)).toEqual([0, 0, asker(2, one).token]);
    expect(await stage.heard(2)).toEqual([]);
  });

  test("a break names any number of a block, and ends no other grant", async () => {
    const keys = stage.lock();
    const block = await stage.grant(keys, asker(1, one), { want: 5 });
    const other = await stage.grant(keys, asker(2, one), { want: 5 });
    for (const number of [block.first - 1, other.last + 1]) {
      expect(await stage.ask(keys, ["breakGrant", String(number), "s", "test"])).toEqual([0, 0]);
    }
    expect(await stage.ask(keys, ["breakGrant", String(other.last - 1), "s", "test"])).toEqual([1, 0]);
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.ask(keys, ["verify", asker(1, one).token])).toMatchObject({ 0: 1 });
    expect(await stage.ask(keys, ["verify", asker(2, one).token])).toEqual([3]);
  });

  test("inspect tells the first and the last number of each holder", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, asker(1, one), { want: 17 });
    const answer = await stage.ask(keys, ["inspect"]);
    expect((answer.at(-1) as unknown[][])[0]).toEqual([
      asker(1, one).token,
      expect.any(Number),
      String(first),
      1,
      "",
      String(last),
    ]);
  });

  test("who has waited in its process takes the present limit, if that is enough, and keeps it as it is", async () => {
    const keys = stage.lock();
    const waited = (attempt: number, permits: number) => asker(attempt, { share: `a${permits}/5` });
    await stage.grant(keys, asker(1, one));
    expect(await stage.ask(keys, acquireOf(asker(2, { share: "s1/5" })))).toEqual([
      "error",
      "LIMITMISMATCH 2",
    ]);
    expect(await stage.ask(keys, acquireOf(waited(3, 3)))).toEqual(["error", "LIMITMISMATCH 2"]);
    await stage.grant(keys, waited(3, 1));
    expect(await stage.ask(keys, acquireOf(waited(4, 1)))).toMatchObject({ 0: 0 });
    expect(await stage.redis.hget(keys[2], "limit")).toBe("2");
    expect(await stage.redis.zcard(keys[0])).toBe(2);
  });

  test("where nobody holds or waits, who has waited brings the limit that it names", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1, { share: "a1/5" }));
    expect(await stage.redis.hget(keys[2], "limit")).toBe("5");
  });

  test("a holder that an earlier version wrote has one number", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, asker(1, one));
    await stage.redis.hset(keys[2], `h${asker(1, one).token}`, `${first} 1`);
    const [, repeated, last] = await stage.ask(keys, acquireOf(asker(1, one), { want: 17 }));
    expect([repeated, last]).toEqual([first, first]);
  });
  test("a repeat of a grant whose numbers were evicted is told new ones, behind all others", async () => {
    const keys = stage.lock();
    const granted = [];
    for (const who of [asker(1, one), asker(2, one)]) {
      granted.push(await stage.grant(keys, who, { want: 17 }));
    }
    await stage.redis.del(keys[2]);
    for (const who of [asker(1, one), asker(2, one), asker(1, one)]) {
      granted.push(await stage.grant(keys, who, { want: 17 }));
    }
    const [, before, first, second, repeated] = granted;
    expect(first?.first).toBeGreaterThan(before?.last ?? Infinity);
    expect(second?.first).toBeGreaterThan(first?.last ?? Infinity);
    expect(repeated).toEqual(first);
  });
});
