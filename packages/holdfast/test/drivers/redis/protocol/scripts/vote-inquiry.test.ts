import { expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type Requester } from "../../../../support/script-fixture.ts";

onNodes("the inquiry", (fixture) => {
  const later = requester(2, { client: 20, ticket: 50 });
  const earlier = requester(3, { ticket: 49 });

  test("goes to a holder with a later ticket, once for each request, with the holder's token and number", async () => {
    const [keys, first] = await heldBy(later);
    const [status, , position, holder] = await fixture.queue(keys, earlier);
    expect([status, position, holder]).toEqual([0, 0, later.token]);
    expect(await fixture.received(20)).toEqual([`inquiry ${later.token} ${first}`]);
    await fixture.queue(keys, earlier);
    expect(await fixture.received(20)).toEqual([`inquiry ${later.token} ${first}`]);
    expect(await fixture.data.get(keys[0])).toBe(later.token);
  });

  test("does not go to a holder with an earlier ticket", async () => {
    const [keys] = await heldBy(later);
    await fixture.queue(keys, requester(3, { ticket: 51 }));
    expect(await fixture.received(20)).toEqual([]);
  });

  test("compares tickets as numbers: one with fewer digits is earlier", async () => {
    const [keys] = await heldBy(requester(2, { client: 20, ticket: 1_000 }));
    await fixture.queue(keys, requester(3, { ticket: 999 }));
    expect(await fixture.received(20)).toHaveLength(1);
  });

  test("orders two requests with the same ticket by their bytes, as the queue does", async () => {
    const [one, middle, other] = [0x0a, 0x10, 0xa0].map((attempt) =>
      requester(attempt, { client: 20, ticket: 50 }),
    ) as [Requester, Requester, Requester];
    const [keys] = await heldBy(middle);
    await fixture.queue(keys, other);
    expect(await fixture.received(20)).toEqual([]);
    await fixture.queue(keys, one);
    expect(await fixture.received(20)).toHaveLength(1);
    expect(await fixture.data.zrange(keys[1])).toEqual([one.member, other.member]);
  });

  test("is never sent for a try", async () => {
    const [keys] = await heldBy(later);
    expect((await fixture.run(keys, acquireOf(earlier)))[0]).toBe(0);
    expect(await fixture.received(20)).toEqual([]);
  });

  test("is never sent for the holder's own request", async () => {
    const [keys] = await heldBy(later);
    expect((await fixture.queue(keys, later))[0]).toBe(1);
    expect(await fixture.received(20)).toEqual([]);
  });

  test("is sent for a request that releases a grant, and for a yield of a lost vote", async () => {
    const [keys, first] = await heldBy(later);
    await fixture.run(keys, acquireOf(earlier, { wait: "3" }));
    expect(await fixture.received(20)).toEqual([`inquiry ${later.token} ${first}`]);
    await fixture.run(keys, ["yield", earlier.token, earlier.entryTail, String(first), "30000", "1", ""]);
    expect(await fixture.received(20)).toEqual([`inquiry ${later.token} ${first}`]);
  });

  test("is not sent for a lock of another library, nor without a known number", async () => {
    const foreign = fixture.lock();
    await fixture.data.set(foreign[0], "somebody else's");
    expect((await fixture.queue(foreign, earlier)).slice(0, 3)).toEqual([0, -1, 0]);
    const [keys] = await heldBy(later);
    await fixture.data.del(fenceOf(keys));
    expect((await fixture.queue(keys, earlier))[2]).toBe(0);
    expect(await fixture.received(20)).toEqual([]);
  });

  test("uses the kind of pub/sub of the requester", async () => {
    await fixture.listen(30, "p");
    const [keys] = await heldBy(requester(2, { client: 30, ticket: 50 }));
    await fixture.queue(keys, requester(3, { ticket: 49, kind: "p" }));
    expect(await fixture.received(30)).toHaveLength(1);
    await fixture.queue(keys, requester(4, { ticket: 48, kind: "s" }));
    expect(await fixture.received(30)).toEqual([]);
  });

  async function heldBy(holder: Requester): Promise<[keys: LockKeys, first: number]> {
    await fixture.listen(20);
    const keys = fixture.lock();
    return [keys, (await fixture.grant(keys, holder)).first];
  }
});
