import { expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { asker, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type Asker } from "../../../../support/script-fixture.ts";

onNodes("the inquiry", (stage) => {
  const later = asker(2, { client: 20, ticket: 50 });
  const earlier = asker(3, { ticket: 49 });

  test("goes to a holder with a later ticket, once for each request, and says its token and its number", async () => {
    const [keys, first] = await heldBy(later);
    const [status, , position, holder] = await stage.queue(keys, earlier);
    expect([status, position, holder]).toEqual([0, 0, later.token]);
    expect(await stage.heard(20)).toEqual([`inquiry ${later.token} ${first}`]);
    await stage.queue(keys, earlier);
    expect(await stage.heard(20)).toEqual([`inquiry ${later.token} ${first}`]);
    expect(await stage.data.get(keys[0])).toBe(later.token);
  });

  test("does not go to a holder with an earlier ticket", async () => {
    const [keys] = await heldBy(later);
    await stage.queue(keys, asker(3, { ticket: 51 }));
    expect(await stage.heard(20)).toEqual([]);
  });

  test("tickets are numbers: one with fewer digits is earlier", async () => {
    const [keys] = await heldBy(asker(2, { client: 20, ticket: 1_000 }));
    await stage.queue(keys, asker(3, { ticket: 999 }));
    expect(await stage.heard(20)).toHaveLength(1);
  });

  test("of two with the same ticket the first by its bytes is earlier, as in the queue", async () => {
    const [one, middle, other] = [0x0a, 0x10, 0xa0].map((attempt) =>
      asker(attempt, { client: 20, ticket: 50 }),
    ) as [Asker, Asker, Asker];
    const [keys] = await heldBy(middle);
    await stage.queue(keys, other);
    expect(await stage.heard(20)).toEqual([]);
    await stage.queue(keys, one);
    expect(await stage.heard(20)).toHaveLength(1);
    expect(await stage.data.zrange(keys[1])).toEqual([one.member, other.member]);
  });

  test("is never sent for a try", async () => {
    const [keys] = await heldBy(later);
    expect((await stage.ask(keys, acquireOf(earlier)))[0]).toBe(0);
    expect(await stage.heard(20)).toEqual([]);
  });

  test("is never sent for the holder's own question", async () => {
    const [keys] = await heldBy(later);
    expect((await stage.queue(keys, later))[0]).toBe(1);
    expect(await stage.heard(20)).toEqual([]);
  });

  test("is sent for who gives a grant up, and for a yield of what is no longer ours", async () => {
    const [keys, first] = await heldBy(later);
    await stage.ask(keys, acquireOf(earlier, { wait: "3" }));
    expect(await stage.heard(20)).toEqual([`inquiry ${later.token} ${first}`]);
    await stage.ask(keys, ["yield", earlier.token, earlier.terms, String(first), "30000", "1", ""]);
    expect(await stage.heard(20)).toEqual([`inquiry ${later.token} ${first}`]);
  });

  test("is not sent where a lock is another library's, or its number is not known", async () => {
    const foreign = stage.lock();
    await stage.data.set(foreign[0], "somebody else's");
    expect((await stage.queue(foreign, earlier)).slice(0, 3)).toEqual([0, -1, 0]);
    const [keys] = await heldBy(later);
    await stage.data.del(fenceOf(keys));
    expect((await stage.queue(keys, earlier))[2]).toBe(0);
    expect(await stage.heard(20)).toEqual([]);
  });

  test("goes by the pub/sub of who asks", async () => {
    await stage.listen(30, "p");
    const [keys] = await heldBy(asker(2, { client: 30, ticket: 50 }));
    await stage.queue(keys, asker(3, { ticket: 49, kind: "p" }));
    expect(await stage.heard(30)).toHaveLength(1);
    await stage.queue(keys, asker(4, { ticket: 48, kind: "s" }));
    expect(await stage.heard(30)).toEqual([]);
  });

  async function heldBy(holder: Asker): Promise<[keys: LockKeys, first: number]> {
    await stage.listen(20);
    const keys = stage.lock();
    return [keys, (await stage.grant(keys, holder)).first];
  }
});
