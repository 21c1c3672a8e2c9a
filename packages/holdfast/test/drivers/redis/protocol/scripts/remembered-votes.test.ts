import { setTimeout as pause } from "node:timers/promises";

import { describe, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onNodes, waitMs, type QuorumStage } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, asker, type Answer, type Asker } from "../../../../support/script-fixture.ts";

// What a quorum's node remembers of its votes where K is gone before its time, or was never released.

const ttlMs = 200;
const queued = (who: Asker): string[] => acquireOf(who, { wait: "2", ttlMs: 30_000 });

onNodes("a vote whose key has vanished", (stage) => {
  const [us, other] = [asker(1), asker(2)];

  test("is there again for its holder, with its numbers", async () => {
    const keys = stage.lock();
    const { first, last } = await stage.grant(keys, us, { want: 4 });
    await stage.data.del(keys[0]);
    expect(await stage.ask(keys, ["verify", us.token])).toEqual([1, expect.any(Number), first]);
    await stage.data.del(keys[0]);
    expect(await stage.ask(keys, ["extend", us.token, "40000", "", String(first)])).toEqual([1, first]);
    expect(await stage.data.pttl(keys[0])).toBeGreaterThan(30_000);
    await stage.data.del(keys[0]);
    expect(await stage.ask(keys, queued(us))).toEqual([1, first, last, us.token]);
  });

  test("keeps the node from voting for another until its time is over", async () => {
    const keys = stage.lock();
    await stage.grant(keys, us, { ttlMs: 20_000 });
    await stage.data.del(keys[0]);
    const [status, leftMs, , holder] = await stage.ask(keys, queued(other));
    expect([status, holder]).toEqual([0, us.token]);
    expect(leftMs).toBeGreaterThan(19_000);
    expect(await stage.data.pttl(keys[0])).toBeLessThanOrEqual(20_000);
  });

  test("is as long as the last extension", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { ttlMs });
    await stage.ask(keys, ["extend", us.token, "20000", "", String(first)]);
    await stage.data.del(keys[0]);
    expect((await stage.ask(keys, queued(other)))[1]).toBeGreaterThan(19_000);
  });

  test("of who shares is there again, and keeps out who may not be beside it", async () => {
    const keys = stage.lock();
    const [reader, writer] = [asker(3, { share: "r" }), asker(4, { share: "w" })];
    const { first } = await stage.grant(keys, reader, { ttlMs: 20_000 });
    await stage.data.del(keys[0]);
    const [status, leftMs, , holder] = await stage.ask(keys, queued(writer));
    expect([status, holder]).toEqual([0, reader.token]);
    expect(leftMs).toBeGreaterThan(19_000);
    expect(await stage.ask(keys, ["verify", reader.token])).toEqual([1, expect.any(Number), first]);
    await stage.ask(keys, ["release", writer.token, writer.terms]);
    await stage.data.del(keys[0]);
    expect((await stage.ask(keys, queued(asker(5, { share: "r" }))))[0]).toBe(1);
    expect(await stage.data.zrange(keys[0])).toHaveLength(2);
  });

  test("keeps out a mutex beside readers, and a writer beside a mutex", async () => {
    const [shared, single] = [stage.lock(), stage.lock()];
    await stage.grant(shared, asker(3, { share: "r" }));
    await stage.grant(single, us);
    await stage.data.del(shared[0]);
    await stage.data.del(single[0]);
    const refused = ["error", expect.stringContaining("WRONGTYPE")];
    expect(await stage.ask(shared, queued(other))).toEqual(refused);
    expect(await stage.ask(single, queued(asker(6, { share: "w" })))).toEqual(refused);
  });
});

onNodes("a vote behind a holder that was not released", (stage) => {
  test.each([
    ["mutex", asker(1), asker(2)],
    ["writer behind a writer", asker(1, { share: "w" }), asker(2, { share: "w" })],
    ["reader behind a writer", asker(1, { share: "w" }), asker(2, { share: "r" })],
    ["writer behind a reader", asker(1, { share: "r" }), asker(2, { share: "w" })],
    ["mutex behind a reader", asker(1, { share: "r" }), asker(2)],
    ["reader behind a mutex", asker(1), asker(2, { share: "r" })],
  ])("counts when its wait is over: a %s", async (_, before, next) => {
    const keys = stage.lock();
    const since = performance.now();
    await expired(stage, keys, before);
    const waits = waitOf(await stage.ask(keys, queued(next)));
    expect(waits).toBeGreaterThan(waitMs - (performance.now() - since));
    expect(waits).toBeLessThan(waitMs);
    await pause(30);
    const later = waitOf(await stage.ask(keys, queued(next))); // by a repeat as well
    expect(later).toBeLessThanOrEqual(waits - 29);
    expect(later).toBeGreaterThan(0);
  });

  test("counts at once where both read", async () => {
    const keys = stage.lock();
    await expired(stage, keys, asker(1, { share: "r" }));
    expect(await stage.ask(keys, queued(asker(2, { share: "r" })))).toHaveLength(4);
  });

  test.each(["", "w"])("goes on waiting whatever becomes of later ones (%j)", async (share) => {
    const own = share === "" ? {} : { share };
    const keys = stage.lock();
    await expired(stage, keys, asker(1, own));
    const yielding = asker(3, own);
    const [, number] = await stage.ask(keys, queued(yielding));
    await stage.ask(keys, ["yield", yielding.token, yielding.terms, String(number), "30000", "1", ""]);
    await stage.ask(keys, ["release", yielding.token, yielding.terms]);
    const [, next] = await stage.ask(keys, queued(asker(4, own)));
    expect(await stage.ask(keys, ["breakGrant", String(next), "s", "test"])).toEqual([1, 0]);
    expect(waitOf(await stage.ask(keys, queued(asker(5, own))))).toBeGreaterThan(200);
  });

  test.each(["", "w"])("tells by a message in how many ms it counts (%j)", async (share) => {
    const own = share === "" ? {} : { share };
    const keys = stage.lock();
    await stage.listen(7);
    const since = performance.now();
    await expired(stage, keys, asker(1, own), asker(7, own));
    const passer = asker(8, own);
    await stage.ask(keys, ["release", passer.token, passer.terms]); // whoever comes serves who waits
    const [message] = await stage.heard(7);
    const waits = Number(/ 3000\+(\d+) /.exec(message ?? "")?.[1]);
    expect(waits).toBeGreaterThan(waitMs - (performance.now() - since));
    expect(waits).toBeLessThanOrEqual(waitMs);
  });

  test("does not wait for itself, where nobody else came", async () => {
    const keys = stage.lock();
    const us = asker(1);
    await expired(stage, keys, us);
    expect(waitOf(await stage.ask(keys, queued(us)))).toBe(0);
  });
});

onNodes("a holder that was given up", (stage) => {
  describe.each(["", "w"])("share %j", (share) => {
    const own = share === "" ? {} : { share };
    const us = asker(9, own);
    const next = asker(2, { ...own, client: 20 });

    test.each(["release", "yield"])("is not waited for: %s, though its key had vanished", async (name) => {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, us, { ttlMs: 20_000 });
      await stage.listen(20);
      await stage.queue(keys, next);
      await stage.data.del(keys[0]);
      await giveUp(stage, keys, us, name, first);
      expect(waitOf(await stage.ask(keys, queued(next)))).toBe(0);
    });

    test.each(["release", "yield"])("is not waited for: %s, though its time was over", async (name) => {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, us, { ttlMs });
      await pause(ttlMs + 10);
      await giveUp(stage, keys, us, name, first);
      await stage.ask(keys, ["release", us.token, us.terms]);
      expect(waitOf(await stage.ask(keys, queued(next)))).toBe(0);
    });

    test("is not waited for: broken, though its key had vanished", async () => {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, us, { ttlMs: 20_000 });
      await stage.data.del(keys[0]);
      expect(await stage.ask(keys, ["breakGrant", String(first), "s", "test"])).toEqual([1, 0]);
      expect(waitOf(await stage.ask(keys, queued(next)))).toBe(0);
    });

    test("is not remembered by an offer that nobody heard", async () => {
      const keys = stage.lock();
      await expired(stage, keys, us, asker(4, own)); // who waits is of a process that is gone
      const passer = asker(6, own);
      await stage.ask(keys, ["release", passer.token, passer.terms]);
      expect(waitOf(await stage.ask(keys, queued(asker(5, own))))).toBeLessThanOrEqual(waitMs); // behind the holder alone
    });
  });
});

onNodes("refill", (stage) => {
  describe.each(["", "w"])("share %j", (share) => {
    const own = share === "" ? {} : { share };
    const us = asker(1, own);
    const refillOf = (number: number, latest: number): string[] => {
      const text = String(number);
      return ["refill", us.token, us.terms, "30000", text, text, String(latest)];
    };
    const soon = async (): Promise<number> => Math.floor((await stage.micros()) / 1000) + 10_000;

    test("gives the lease's own number, and the next grant a greater one than any", async () => {
      const keys = stage.lock();
      const between = asker(2, own);
      const ahead = (await stage.micros()) + 900_000; // the time alone would not keep the next one above it
      const first = Number((await stage.ask(keys, acquireOf(between), ahead))[1]);
      await stage.ask(keys, ["release", between.token, between.terms]);
      const number = first - 1_000;
      const answer = await stage.ask(keys, refillOf(number, await soon()));
      expect(answer.slice(0, 3).map(Number)).toEqual([1, number, number]);
      expect(await stage.ask(keys, ["verify", us.token])).toEqual([1, expect.any(Number), number]);
      await stage.ask(keys, ["release", us.token, us.terms]);
      expect((await stage.grant(keys, asker(3, own))).first).toBeGreaterThan(first);
    });

    test("puts the lease's number in the place of a later one", async () => {
      const keys = stage.lock();
      const { first } = await stage.grant(keys, us);
      const extension = ["extend", us.token, "30000", "", String(first - 1)];
      expect(await stage.ask(keys, extension)).toEqual([0]);
      await stage.ask(keys, refillOf(first - 1, await soon()));
      expect(await stage.ask(keys, extension)).toEqual([1, first - 1]);
    });

    test("does nothing where another has the vote or waits for it, or when the lease is over", async () => {
      const [held, late, wanted] = [stage.lock(), stage.lock(), stage.lock()];
      await stage.grant(held, asker(2, own));
      expect((await stage.ask(held, refillOf(5, await soon())))[0]).toBe(0);
      expect((await stage.ask(late, refillOf(5, (await soon()) - 20_000)))[0]).toBe(0);
      await stage.listen(8);
      const before = asker(3, own);
      await stage.grant(wanted, before);
      await stage.queue(wanted, asker(8, own));
      await stage.ask(wanted, ["release", before.token, before.terms]);
      expect((await stage.ask(wanted, refillOf(5, await soon())))[0]).toBe(0);
    });
  });
});

/** It held the lock, did not release it, and its time is over; `waiting` stands in line. */
async function expired(stage: QuorumStage, keys: LockKeys, who: Asker, waiting?: Asker): Promise<void> {
  await stage.grant(keys, who, { ttlMs });
  if (waiting) {
    await stage.queue(keys, waiting);
  }
  await pause(ttlMs + 5);
}

async function giveUp(
  stage: QuorumStage,
  keys: LockKeys,
  { token, terms }: Asker,
  name: string,
  number: number,
): Promise<void> {
  const args = [name, token, terms];
  await stage.ask(keys, name === "release" ? args : [...args, String(number), "30000", "1", ""]);
}

/** In how many ms a vote counts. */
function waitOf(answer: Answer): number {
  expect(answer[0]).toBe(1);
  return Number(answer[4] ?? 0);
}
