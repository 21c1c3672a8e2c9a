import { expect, test } from "vitest";

import { asker, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type Asker } from "../../../../support/script-fixture.ts";

onNodes("what a node executes too late", (stage) => {
  const kinds = [{}, { share: "r" }, { share: "w" }] as const;

  test("an acquire gets neither a vote nor a place", async () => {
    for (const kind of kinds) {
      for (const wait of ["0", "1", "2"] as const) {
        const keys = stage.lock();
        const late = acquireOf(asker(1, kind), { wait, latest: Date.now() - 1 });
        expect(await stage.ask(keys, late)).toEqual([4]);
        expect(await stage.data.pttl(keys[0])).toBe(-2);
        expect(await stage.data.zrange(keys[1])).toEqual([]);
      }
    }
  });

  test("an acquire does not prolong the vote of its token, and does not queue behind another's", async () => {
    for (const kind of [{}, { share: "w" }]) {
      const keys = stage.lock();
      await stage.grant(keys, asker(1, kind), { ttlMs: 2_000 });
      for (const n of [1, 2]) {
        const late = acquireOf(asker(n, kind), { wait: "1", ttlMs: 60_000, latest: Date.now() - 1 });
        expect(await stage.ask(keys, late)).toEqual([4]);
      }
      expect(await stage.data.pttl(keys[0])).toBeLessThanOrEqual(4_000);
      expect(await stage.data.zrange(keys[1])).toEqual([]);
    }
  });

  test("an acquire does not make the node forget the vote whose key has vanished", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1), { ttlMs: 100 });
    await stage.data.del(keys[0]);
    await stage.data.hset(fenceOf(keys), "by", `${asker(1).token} ${Date.now() - 1}`);
    expect(await stage.ask(keys, acquireOf(asker(1), { latest: Date.now() - 10 }))).toEqual([4]);
    const [, , , , leftMs] = await stage.ask(keys, acquireOf(asker(2)));
    expect(leftMs).toBeGreaterThan(0);
  });

  test("a yield gives nothing back", async () => {
    for (const kind of [{}, { share: "w" }]) {
      const keys = stage.lock();
      const us = asker(5, { ...kind, ticket: 50 });
      const { first } = await stage.grant(keys, us);
      await stage.queue(keys, asker(4, { ...kind, ticket: 40 }));
      expect(await stage.ask(keys, yieldOf(us, first, Date.now() - 1))).toEqual([4]);
      const [status, number] = await stage.ask(keys, acquireOf(us, { wait: "1" }));
      expect([status, number]).toEqual([1, first]);
    }
  });
});

function yieldOf({ token, terms }: Asker, number: number, latest: number): string[] {
  return ["yield", token, terms, String(number), "30000", "1", "", String(latest)];
}
