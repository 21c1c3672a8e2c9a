import { setTimeout as pause } from "node:timers/promises";

import { describe, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onNodes, waitMs, type QuorumScriptFixture } from "../../../../support/quorum-script-fixture.ts";
import {
  acquireOf,
  requester,
  type ScriptReply,
  type Requester,
} from "../../../../support/script-fixture.ts";

// A node of a quorum remembers votes whose lock key vanished too early, or was never released.

const ttlMs = 200;
const queued = (who: Requester): string[] => acquireOf(who, { wait: "2", ttlMs: 30_000 });

onNodes("a vote whose key has vanished", (fixture) => {
  const [us, other] = [requester(1), requester(2)];

  test("exists again for its holder, with its numbers", async () => {
    const keys = fixture.lock();
    const { first, last } = await fixture.grant(keys, us, { fencingCount: 4 });
    await fixture.data.del(keys[0]);
    expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), first]);
    await fixture.data.del(keys[0]);
    expect(await fixture.run(keys, ["extend", us.token, "40000", "", String(first)])).toEqual([1, first]);
    expect(await fixture.data.pttl(keys[0])).toBeGreaterThan(30_000);
    await fixture.data.del(keys[0]);
    expect(await fixture.run(keys, queued(us))).toEqual([1, first, last, us.token]);
  });

  test("keeps the node from voting for another until its TTL ends", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, us, { ttlMs: 20_000 });
    await fixture.data.del(keys[0]);
    const [status, leftMs, , holder] = await fixture.run(keys, queued(other));
    expect([status, holder]).toEqual([0, us.token]);
    expect(leftMs).toBeGreaterThan(19_000);
    expect(await fixture.data.pttl(keys[0])).toBeLessThanOrEqual(20_000);
  });

  test("lasts as long as the last extension", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { ttlMs });
    await fixture.run(keys, ["extend", us.token, "20000", "", String(first)]);
    await fixture.data.del(keys[0]);
    expect((await fixture.run(keys, queued(other)))[1]).toBeGreaterThan(19_000);
  });

  test("in a shared mode exists again, and excludes conflicting modes", async () => {
    const keys = fixture.lock();
    const [reader, writer] = [requester(3, { lockMode: "r" }), requester(4, { lockMode: "w" })];
    const { first } = await fixture.grant(keys, reader, { ttlMs: 20_000 });
    await fixture.data.del(keys[0]);
    const [status, leftMs, , holder] = await fixture.run(keys, queued(writer));
    expect([status, holder]).toEqual([0, reader.token]);
    expect(leftMs).toBeGreaterThan(19_000);
    expect(await fixture.run(keys, ["verify", reader.token])).toEqual([1, expect.any(Number), first]);
    await fixture.run(keys, ["release", writer.token, writer.entryTail]);
    await fixture.data.del(keys[0]);
    expect((await fixture.run(keys, queued(requester(5, { lockMode: "r" }))))[0]).toBe(1);
    expect(await fixture.data.zrange(keys[0])).toHaveLength(2);
  });

  test("excludes a mutex beside readers, and a writer beside a mutex", async () => {
    const [shared, single] = [fixture.lock(), fixture.lock()];
    await fixture.grant(shared, requester(3, { lockMode: "r" }));
    await fixture.grant(single, us);
    await fixture.data.del(shared[0]);
    await fixture.data.del(single[0]);
    const refused = ["error", expect.stringContaining("WRONGTYPE")];
    expect(await fixture.run(shared, queued(other))).toEqual(refused);
    expect(await fixture.run(single, queued(requester(6, { lockMode: "w" })))).toEqual(refused);
  });
});

onNodes("a vote after a holder that was not released", (fixture) => {
  test.each([
    ["mutex", requester(1), requester(2)],
    ["writer after a writer", requester(1, { lockMode: "w" }), requester(2, { lockMode: "w" })],
    ["reader after a writer", requester(1, { lockMode: "w" }), requester(2, { lockMode: "r" })],
    ["writer after a reader", requester(1, { lockMode: "r" }), requester(2, { lockMode: "w" })],
    ["mutex after a reader", requester(1, { lockMode: "r" }), requester(2)],
    ["reader after a mutex", requester(1), requester(2, { lockMode: "r" })],
  ])("counts when its wait has ended: a %s", async (_, before, next) => {
    const keys = fixture.lock();
    const since = performance.now();
    await expired(fixture, keys, before);
    const waits = waitOf(await fixture.run(keys, queued(next)));
    expect(waits).toBeGreaterThan(waitMs - (performance.now() - since));
    expect(waits).toBeLessThan(waitMs);
    await pause(30);
    const later = waitOf(await fixture.run(keys, queued(next))); // by a repeat as well
    expect(later).toBeLessThanOrEqual(waits - 29);
    expect(later).toBeGreaterThan(0);
  });

  test("counts at once if both read", async () => {
    const keys = fixture.lock();
    await expired(fixture, keys, requester(1, { lockMode: "r" }));
    expect(await fixture.run(keys, queued(requester(2, { lockMode: "r" })))).toHaveLength(4);
  });

  test.each(["", "w"])("keeps its wait, whatever later grants do (%j)", async (lockMode) => {
    const own = lockMode === "" ? {} : { lockMode };
    const keys = fixture.lock();
    await expired(fixture, keys, requester(1, own));
    const yielding = requester(3, own);
    const [, number] = await fixture.run(keys, queued(yielding));
    await fixture.run(keys, ["yield", yielding.token, yielding.entryTail, String(number), "30000", "1", ""]);
    await fixture.run(keys, ["release", yielding.token, yielding.entryTail]);
    const [, next] = await fixture.run(keys, queued(requester(4, own)));
    expect(await fixture.run(keys, ["breakGrant", String(next), "s", "test"])).toEqual([1, 0]);
    expect(waitOf(await fixture.run(keys, queued(requester(5, own))))).toBeGreaterThan(200);
  });

  test.each(["", "w"])("is notified with the ms until it counts (%j)", async (lockMode) => {
    const own = lockMode === "" ? {} : { lockMode };
    const keys = fixture.lock();
    await fixture.listen(7);
    const since = performance.now();
    await expired(fixture, keys, requester(1, own), requester(7, own));
    const stranger = requester(8, own);
    await fixture.run(keys, ["release", stranger.token, stranger.entryTail]); // any request serves the waiters
    const [message] = await fixture.received(7);
    const waits = Number(/ 3000\+(\d+) /.exec(message ?? "")?.[1]);
    expect(waits).toBeGreaterThan(waitMs - (performance.now() - since));
    expect(waits).toBeLessThanOrEqual(waitMs);
  });

  test("does not wait for its own earlier grant, if no other client came", async () => {
    const keys = fixture.lock();
    const us = requester(1);
    await expired(fixture, keys, us);
    expect(waitOf(await fixture.run(keys, queued(us)))).toBe(0);
  });
});

onNodes("a holder that has ended", (fixture) => {
  describe.each(["", "w"])("mode %j", (lockMode) => {
    const own = lockMode === "" ? {} : { lockMode };
    const us = requester(9, own);
    const next = requester(2, { ...own, client: 20 });

    test.each(["release", "yield"])("is not awaited: %s, though its key had vanished", async (name) => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us, { ttlMs: 20_000 });
      await fixture.listen(20);
      await fixture.queue(keys, next);
      await fixture.data.del(keys[0]);
      await endGrant(fixture, keys, us, name, first);
      expect(waitOf(await fixture.run(keys, queued(next)))).toBe(0);
    });

    test.each(["release", "yield"])("is not awaited: %s, though its TTL had ended", async (name) => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us, { ttlMs });
      await pause(ttlMs + 10);
      await endGrant(fixture, keys, us, name, first);
      await fixture.run(keys, ["release", us.token, us.entryTail]);
      expect(waitOf(await fixture.run(keys, queued(next)))).toBe(0);
    });

    test("is not awaited: broken, though its key had vanished", async () => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us, { ttlMs: 20_000 });
      await fixture.data.del(keys[0]);
      expect(await fixture.run(keys, ["breakGrant", String(first), "s", "test"])).toEqual([1, 0]);
      expect(waitOf(await fixture.run(keys, queued(next)))).toBe(0);
    });

    test("is not remembered if no client received the offer", async () => {
      const keys = fixture.lock();
      await expired(fixture, keys, us, requester(4, own)); // the waiter's process has ended
      const stranger = requester(6, own);
      await fixture.run(keys, ["release", stranger.token, stranger.entryTail]);
      expect(waitOf(await fixture.run(keys, queued(requester(5, own))))).toBeLessThanOrEqual(waitMs); // after the holder alone
    });
  });
});

onNodes("refill", (fixture) => {
  describe.each(["", "w"])("mode %j", (lockMode) => {
    const own = lockMode === "" ? {} : { lockMode };
    const us = requester(1, own);
    const refillOf = (number: number, latest: number): string[] => {
      const text = String(number);
      return ["refill", us.token, us.entryTail, "30000", text, text, String(latest)];
    };
    const soon = async (): Promise<number> => Math.floor((await fixture.micros()) / 1000) + 10_000;

    test("restores the lease's own number, and the next grant gets a larger one than any", async () => {
      const keys = fixture.lock();
      const between = requester(2, own);
      const ahead = (await fixture.micros()) + 900_000; // the time alone would not keep the next number above this one
      const first = Number((await fixture.run(keys, acquireOf(between), ahead))[1]);
      await fixture.run(keys, ["release", between.token, between.entryTail]);
      const number = first - 1_000;
      const answer = await fixture.run(keys, refillOf(number, await soon()));
      expect(answer.slice(0, 3).map(Number)).toEqual([1, number, number]);
      expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), number]);
      await fixture.run(keys, ["release", us.token, us.entryTail]);
      expect((await fixture.grant(keys, requester(3, own))).first).toBeGreaterThan(first);
    });

    test("replaces a later number by the lease's", async () => {
      const keys = fixture.lock();
      const { first } = await fixture.grant(keys, us);
      const extension = ["extend", us.token, "30000", "", String(first - 1)];
      expect(await fixture.run(keys, extension)).toEqual([0]);
      await fixture.run(keys, refillOf(first - 1, await soon()));
      expect(await fixture.run(keys, extension)).toEqual([1, first - 1]);
    });

    test("does nothing if another has the vote or waits for it, or after the lease has ended", async () => {
      const [held, late, wanted] = [fixture.lock(), fixture.lock(), fixture.lock()];
      await fixture.grant(held, requester(2, own));
      expect((await fixture.run(held, refillOf(5, await soon())))[0]).toBe(0);
      expect((await fixture.run(late, refillOf(5, (await soon()) - 20_000)))[0]).toBe(0);
      await fixture.listen(8);
      const before = requester(3, own);
      await fixture.grant(wanted, before);
      await fixture.queue(wanted, requester(8, own));
      await fixture.run(wanted, ["release", before.token, before.entryTail]);
      expect((await fixture.run(wanted, refillOf(5, await soon())))[0]).toBe(0);
    });
  });
});

/** A holder whose TTL has ended without a release, and the queued waiter `waiting`. */
async function expired(
  fixture: QuorumScriptFixture,
  keys: LockKeys,
  who: Requester,
  waiting?: Requester,
): Promise<void> {
  await fixture.grant(keys, who, { ttlMs });
  if (waiting) {
    await fixture.queue(keys, waiting);
  }
  await pause(ttlMs + 5);
}

async function endGrant(
  fixture: QuorumScriptFixture,
  keys: LockKeys,
  { token, entryTail }: Requester,
  name: string,
  number: number,
): Promise<void> {
  const args = [name, token, entryTail];
  await fixture.run(keys, name === "release" ? args : [...args, String(number), "30000", "1", ""]);
}

/** After how many ms a vote counts. */
function waitOf(answer: ScriptReply): number {
  expect(answer[0]).toBe(1);
  return Number(answer[4] ?? 0);
}
