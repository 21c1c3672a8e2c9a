import { expect, test } from "vitest";

import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type Requester } from "../../../../support/script-fixture.ts";

onNodes("a request that a node executes too late", (fixture) => {
  const kinds = [{}, { lockMode: "r" }, { lockMode: "w" }] as const;

  test("gets neither a vote nor a queue entry, if it is an acquire", async () => {
    for (const kind of kinds) {
      for (const wait of ["0", "1", "2"] as const) {
        const keys = fixture.lock();
        const late = acquireOf(requester(1, kind), { wait, latest: Date.now() - 1 });
        expect(await fixture.run(keys, late)).toEqual([4]);
        expect(await fixture.data.pttl(keys[0])).toBe(-2);
        expect(await fixture.data.zrange(keys[1])).toEqual([]);
      }
    }
  });

  test("does not extend the vote of its token, and is not queued after another's", async () => {
    for (const kind of [{}, { lockMode: "w" }]) {
      const keys = fixture.lock();
      await fixture.grant(keys, requester(1, kind), { ttlMs: 2_000 });
      for (const n of [1, 2]) {
        const late = acquireOf(requester(n, kind), { wait: "1", ttlMs: 60_000, latest: Date.now() - 1 });
        expect(await fixture.run(keys, late)).toEqual([4]);
      }
      expect(await fixture.data.pttl(keys[0])).toBeLessThanOrEqual(4_000);
      expect(await fixture.data.zrange(keys[1])).toEqual([]);
    }
  });

  test("does not make the node forget a vote whose key has vanished", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1), { ttlMs: 100 });
    await fixture.data.del(keys[0]);
    await fixture.data.hset(fenceOf(keys), "by", `${requester(1).token} ${Date.now() - 1}`);
    expect(await fixture.run(keys, acquireOf(requester(1), { latest: Date.now() - 10 }))).toEqual([4]);
    const [, , , , leftMs] = await fixture.run(keys, acquireOf(requester(2)));
    expect(leftMs).toBeGreaterThan(0);
  });

  test("returns no vote, if it is a yield", async () => {
    for (const kind of [{}, { lockMode: "w" }]) {
      const keys = fixture.lock();
      const us = requester(5, { ...kind, ticket: 50 });
      const { first } = await fixture.grant(keys, us);
      await fixture.queue(keys, requester(4, { ...kind, ticket: 40 }));
      expect(await fixture.run(keys, yieldOf(us, first, Date.now() - 1))).toEqual([4]);
      const [status, number] = await fixture.run(keys, acquireOf(us, { wait: "1" }));
      expect([status, number]).toEqual([1, first]);
    }
  });
});

function yieldOf({ token, entryTail }: Requester, number: number, latest: number): string[] {
  return ["yield", token, entryTail, String(number), "30000", "1", "", String(latest)];
}
