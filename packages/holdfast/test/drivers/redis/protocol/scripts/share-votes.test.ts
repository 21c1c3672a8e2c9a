import { expect, test } from "vitest";

import { asker, onNodes } from "../../../../support/quorum-script-fixture.ts";
import type { Asker } from "../../../../support/script-fixture.ts";

const reader = { share: "r" };
const writer = { share: "w" };

onNodes("a vote for who shares a lock", (stage) => {
  const us = asker(5, { ...writer, ticket: 50 });
  const earlier = asker(4, { ...writer, ticket: 40 });

  test("carries the number of the candidate, and of who holds it already when it is refused", async () => {
    const keys = stage.lock();
    const candidate = (await stage.micros()) + 5_000;
    const args = ["acquire", us.token, us.terms, "30000", "1", "0", ""];
    expect(await stage.ask(keys, args, candidate)).toEqual([1, candidate, candidate, us.token]);
    const other = asker(6, { ...reader, ticket: 60 });
    const [status, , , by, , number] = await stage.ask(keys, acquireOf(other));
    expect([status, by, number]).toEqual([0, us.token, candidate]);
  });

  test("is asked back by an earlier writer from every later reader, and from no earlier one", async () => {
    await Promise.all([stage.listen(1), stage.listen(7), stage.listen(8)]);
    const keys = stage.lock();
    const [before, behind, last] = [1, 7, 8].map((n) => asker(n, { ...reader, ticket: n * 10 })) as [
      Asker,
      Asker,
      Asker,
    ];
    await stage.grant(keys, before);
    const numbers = [await stage.grant(keys, behind), await stage.grant(keys, last)];
    await stage.queue(keys, us);
    expect(await stage.heard(1)).toEqual([]);
    expect(await stage.heard(7)).toEqual([`inquiry ${behind.token} ${numbers[0]?.first}`]);
    expect(await stage.heard(8)).toEqual([`inquiry ${last.token} ${numbers[1]?.first}`]);
  });

  test("is asked back by an earlier reader from a writer, and not from readers", async () => {
    await Promise.all([stage.listen(5), stage.listen(7)]);
    const [written, read] = [stage.lock(), stage.lock()];
    const early = asker(2, { ...reader, ticket: 20 });
    const { first } = await stage.grant(written, us);
    await stage.queue(written, early);
    expect(await stage.heard(5)).toEqual([`inquiry ${us.token} ${first}`]);
    await stage.grant(read, asker(7, { ...reader, ticket: 70 }));
    await stage.queue(read, early);
    expect(await stage.heard(7)).toEqual([]);
  });

  test("is asked back again when who has it asks again, while who came earlier stands first", async () => {
    await Promise.all([stage.listen(1), stage.listen(7)]);
    const keys = stage.lock();
    const [before, behind] = [1, 7].map((n) => asker(n, { ...reader, ticket: n * 10 })) as [Asker, Asker];
    await stage.grant(keys, before);
    const { first } = await stage.grant(keys, behind);
    await stage.queue(keys, us);
    const inquiry = `inquiry ${behind.token} ${first}`;
    expect(await stage.heard(7)).toEqual([inquiry]);
    for (const { token, terms } of [before, behind]) {
      expect(await stage.ask(keys, ["acquire", token, terms, "30000", "1", "2", ""])).toMatchObject({ 0: 1 });
    }
    expect(await stage.heard(7)).toEqual([inquiry]);
    expect(await stage.heard(1)).toEqual([]);
  });

  test("is yielded with this number: to who stands first, and we stand in line at our ticket", async () => {
    await stage.listen(4);
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    const behind = asker(6, { ...writer, ticket: 60 });
    await stage.queue(keys, behind);
    await stage.queue(keys, earlier);
    const [status, , position, by, , number] = await stage.ask(keys, yieldOf(us, first));
    expect([status, position, by]).toEqual([0, 0, earlier.token]);
    expect(Number(number)).toBeGreaterThan(first);
    expect(await stage.data.zrange(keys[1])).toEqual([us.member, behind.member]);
    expect(await stage.data.zrange(keys[0])).toEqual([earlier.token]);
    expect((await stage.heard(4))[0]?.split(" ").slice(0, 3)).toEqual([
      "grant",
      earlier.token,
      String(number),
    ]);
  });

  test("is not yielded with another number: a late or doubled one gives up nothing", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    for (const number of [first - 1, first + 1, 0]) {
      expect(await stage.ask(keys, yieldOf(us, number))).toEqual([1, first, first, us.token]);
    }
    expect(await stage.data.zrange(keys[0])).toEqual([us.token]);
    expect(await stage.data.zrange(keys[1])).toEqual([]);
  });

  test("of one reader is yielded, and the others keep theirs", async () => {
    await stage.listen(4);
    const keys = stage.lock();
    const [one, other] = [asker(6, { ...reader, ticket: 60 }), asker(7, { ...reader, ticket: 70 })];
    const { first } = await stage.grant(keys, one);
    const { first: kept } = await stage.grant(keys, other);
    await stage.queue(keys, earlier);
    expect((await stage.ask(keys, yieldOf(one, first)))[0]).toBe(0);
    expect(await stage.data.zrange(keys[0])).toEqual([other.token]);
    expect(await stage.data.zrange(keys[1])).toEqual([earlier.member, one.member]);
    expect(await stage.ask(keys, ["raiseFence", other.token, String(kept)])).toEqual([1, kept, kept]);
    expect(await stage.heard(4)).toEqual([]);
  });

  test("agrees on a greater number and never on a smaller one; the others' numbers stay", async () => {
    const keys = stage.lock();
    const [one, other] = [asker(6, { ...reader, ticket: 60 }), asker(7, { ...reader, ticket: 70 })];
    const { first } = await stage.grant(keys, one);
    const { first: second } = await stage.grant(keys, other);
    expect(await stage.ask(keys, ["raiseFence", one.token, String(second + 10)])).toEqual([
      1,
      second + 10,
      second + 10,
    ]);
    expect(await stage.ask(keys, ["raiseFence", one.token, String(first)])).toEqual([
      1,
      second + 10,
      second + 10,
    ]);
    expect(await stage.ask(keys, ["verify", other.token])).toEqual([1, expect.any(Number), second]);
    const { first: third } = await stage.grant(keys, asker(8, { ...reader, ticket: 80 }));
    expect(third).toBeGreaterThan(second + 10);
    expect(await stage.ask(keys, ["raiseFence", us.token, "5"])).toEqual([0]);
  });

  test("is extended with its number, and told lost where it is not ours", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us);
    expect(await stage.ask(keys, ["extend", us.token, "30000", "", ""])).toEqual([1, first]);
    expect(await stage.ask(keys, ["extend", earlier.token, "30000", "", ""])).toEqual([0]);
  });
});

function acquireOf({ token, terms }: Asker): string[] {
  return ["acquire", token, terms, "30000", "1", "0", ""];
}

function yieldOf({ token, terms }: Asker, number: number): string[] {
  return ["yield", token, terms, String(number), "30000", "1", ""];
}
