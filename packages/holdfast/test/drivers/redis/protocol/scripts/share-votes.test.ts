import { expect, test } from "vitest";

import { requester, onNodes } from "../../../../support/quorum-script-fixture.ts";
import type { Requester } from "../../../../support/script-fixture.ts";

const reader = { lockMode: "r" };
const writer = { lockMode: "w" };

onNodes("a vote in a shared mode", (fixture) => {
  const us = requester(5, { ...writer, ticket: 50 });
  const earlier = requester(4, { ...writer, ticket: 40 });

  test("has the proposed number, or the number of the present holder if it is refused", async () => {
    const keys = fixture.lock();
    const candidate = (await fixture.micros()) + 5_000;
    const args = ["acquire", us.token, us.entryTail, "30000", "1", "0", ""];
    expect(await fixture.run(keys, args, candidate)).toEqual([1, candidate, candidate, us.token]);
    const other = requester(6, { ...reader, ticket: 60 });
    const [status, , , by, , number] = await fixture.run(keys, acquireOf(other));
    expect([status, by, number]).toEqual([0, us.token, candidate]);
  });

  test("is requested back by an earlier writer from every later reader, and from no earlier one", async () => {
    await Promise.all([fixture.listen(1), fixture.listen(7), fixture.listen(8)]);
    const keys = fixture.lock();
    const [before, after, last] = [1, 7, 8].map((n) => requester(n, { ...reader, ticket: n * 10 })) as [
      Requester,
      Requester,
      Requester,
    ];
    await fixture.grant(keys, before);
    const numbers = [await fixture.grant(keys, after), await fixture.grant(keys, last)];
    await fixture.queue(keys, us);
    expect(await fixture.received(1)).toEqual([]);
    expect(await fixture.received(7)).toEqual([`inquiry ${after.token} ${numbers[0]?.first}`]);
    expect(await fixture.received(8)).toEqual([`inquiry ${last.token} ${numbers[1]?.first}`]);
  });

  test("is requested back by an earlier reader from a writer, and not from readers", async () => {
    await Promise.all([fixture.listen(5), fixture.listen(7)]);
    const [written, read] = [fixture.lock(), fixture.lock()];
    const early = requester(2, { ...reader, ticket: 20 });
    const { first } = await fixture.grant(written, us);
    await fixture.queue(written, early);
    expect(await fixture.received(5)).toEqual([`inquiry ${us.token} ${first}`]);
    await fixture.grant(read, requester(7, { ...reader, ticket: 70 }));
    await fixture.queue(read, early);
    expect(await fixture.received(7)).toEqual([]);
  });

  test("is requested back again at a repeat of its holder, while an earlier waiter is first", async () => {
    await Promise.all([fixture.listen(1), fixture.listen(7)]);
    const keys = fixture.lock();
    const [before, after] = [1, 7].map((n) => requester(n, { ...reader, ticket: n * 10 })) as [
      Requester,
      Requester,
    ];
    await fixture.grant(keys, before);
    const { first } = await fixture.grant(keys, after);
    await fixture.queue(keys, us);
    const inquiry = `inquiry ${after.token} ${first}`;
    expect(await fixture.received(7)).toEqual([inquiry]);
    for (const { token, entryTail } of [before, after]) {
      expect(await fixture.run(keys, ["acquire", token, entryTail, "30000", "1", "2", ""])).toMatchObject({
        0: 1,
      });
    }
    expect(await fixture.received(7)).toEqual([inquiry]);
    expect(await fixture.received(1)).toEqual([]);
  });

  test("is yielded by its number to the first waiter, and the yielding request is queued at its ticket", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    const after = requester(6, { ...writer, ticket: 60 });
    await fixture.queue(keys, after);
    await fixture.queue(keys, earlier);
    const [status, , position, by, , number] = await fixture.run(keys, yieldOf(us, first));
    expect([status, position, by]).toEqual([0, 0, earlier.token]);
    expect(Number(number)).toBeGreaterThan(first);
    expect(await fixture.data.zrange(keys[1])).toEqual([us.member, after.member]);
    expect(await fixture.data.zrange(keys[0])).toEqual([earlier.token]);
    expect((await fixture.received(4))[0]?.split(" ").slice(0, 3)).toEqual([
      "grant",
      earlier.token,
      String(number),
    ]);
  });

  test("is not yielded by another number, so a late or doubled yield has no effect", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    for (const number of [first - 1, first + 1, 0]) {
      expect(await fixture.run(keys, yieldOf(us, number))).toEqual([1, first, first, us.token]);
    }
    expect(await fixture.data.zrange(keys[0])).toEqual([us.token]);
    expect(await fixture.data.zrange(keys[1])).toEqual([]);
  });

  test("is yielded by one reader, and the other readers keep theirs", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    const [one, other] = [requester(6, { ...reader, ticket: 60 }), requester(7, { ...reader, ticket: 70 })];
    const { first } = await fixture.grant(keys, one);
    const { first: kept } = await fixture.grant(keys, other);
    await fixture.queue(keys, earlier);
    expect((await fixture.run(keys, yieldOf(one, first)))[0]).toBe(0);
    expect(await fixture.data.zrange(keys[0])).toEqual([other.token]);
    expect(await fixture.data.zrange(keys[1])).toEqual([earlier.member, one.member]);
    expect(await fixture.run(keys, ["raiseFence", other.token, String(kept)])).toEqual([1, kept, kept]);
    expect(await fixture.received(4)).toEqual([]);
  });

  test("is raised to a larger number and never to a smaller one, and other numbers stay", async () => {
    const keys = fixture.lock();
    const [one, other] = [requester(6, { ...reader, ticket: 60 }), requester(7, { ...reader, ticket: 70 })];
    const { first } = await fixture.grant(keys, one);
    const { first: second } = await fixture.grant(keys, other);
    expect(await fixture.run(keys, ["raiseFence", one.token, String(second + 10)])).toEqual([
      1,
      second + 10,
      second + 10,
    ]);
    expect(await fixture.run(keys, ["raiseFence", one.token, String(first)])).toEqual([
      1,
      second + 10,
      second + 10,
    ]);
    expect(await fixture.run(keys, ["verify", other.token])).toEqual([1, expect.any(Number), second]);
    const { first: third } = await fixture.grant(keys, requester(8, { ...reader, ticket: 80 }));
    expect(third).toBeGreaterThan(second + 10);
    expect(await fixture.run(keys, ["raiseFence", us.token, "5"])).toEqual([0]);
  });

  test("is extended by its number, and reported lost without a grant", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us);
    expect(await fixture.run(keys, ["extend", us.token, "30000", "", ""])).toEqual([1, first]);
    expect(await fixture.run(keys, ["extend", earlier.token, "30000", "", ""])).toEqual([0]);
  });
});

function acquireOf({ token, entryTail }: Requester): string[] {
  return ["acquire", token, entryTail, "30000", "1", "0", ""];
}

function yieldOf({ token, entryTail }: Requester, number: number): string[] {
  return ["yield", token, entryTail, String(number), "30000", "1", ""];
}
