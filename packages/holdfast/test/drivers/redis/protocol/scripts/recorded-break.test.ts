import { afterAll, beforeAll, expect, test } from "vitest";

import { counterKey, KeySpace, type LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { executeSingleScript } from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import { requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const audit = new KeySpace("", "lock:").auditKey();

onRedis("recordedBreak", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
  });
  afterAll(() => fixture.close());

  const breakOf = (number: number): string[] => [
    "recordedBreak",
    String(number),
    "s",
    "stuck",
    '{"by":"ada"}',
  ];

  async function run(operations: readonly (readonly [LockKeys, readonly string[]])[]): Promise<unknown[]> {
    const [lone] = operations;
    const args =
      lone && operations.length === 1 ? lone[1] : [JSON.stringify(operations.flatMap(([, own]) => own))];
    const keys = [counterKey(), ...operations.flatMap(([own]) => own), audit];
    const [, ...answers] = (await fixture.connection.run(executeSingleScript, keys, [
      "100000",
      ...args,
    ])) as unknown[];
    return answers;
  }

  test("without the right to write the record, nothing is broken", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    await fixture.redis.set(audit, "not an audit");
    expect(await run([[keys, breakOf(first)]])).toEqual([["error", expect.stringMatching(/WRONGTYPE/)]]);
    expect(await fixture.holder(keys)).toBe(requester(1).token);
    await fixture.redis.del(audit);
  });

  test("a failed break leaves no record, because it broke nothing", async () => {
    const keys = fixture.lock();
    await fixture.redis.lpush(keys[0], "a list");
    expect(await run([[keys, breakOf(1)]])).toEqual([
      ["error", expect.stringMatching(/WRONGTYPE|KINDMISMATCH/)],
    ]);
    expect(await fixture.redis.exists(audit)).toBe(0);
  });

  test("breaks in one batch have one record each, in order, also for a shared lock and after a step of the clock", async () => {
    const [mutex, shared, free] = [fixture.lock(), fixture.lock(), fixture.lock()];
    const future = 9_000_000_000_000_000;
    await fixture.redis.zadd(audit, String(future), `${future} 1 broken 1 {}`);
    const mutexGrant = await fixture.grant(mutex, requester(1));
    const reader = await fixture.grant(shared, requester(2, { lockMode: "r" }));
    const answers = await run([
      [mutex, breakOf(mutexGrant.first)],
      [shared, breakOf(reader.first)],
      [free, breakOf(7)],
    ]);
    expect(answers).toEqual([
      [1, 0, String(future + 1)],
      [1, 0, String(future + 2)],
      [0, 0],
    ]);
    const records = (await fixture.redis.zrange(audit, "1", "-1")).map((record) => record.split(" "));
    expect(
      records.map(([id, , result, number, note]) => [Number(id) - future, result, Number(number), note]),
    ).toEqual([
      [1, "broken", mutexGrant.first, '{"by":"ada"}'],
      [2, "broken", reader.first, '{"by":"ada"}'],
    ]);
    expect(await fixture.redis.exists(mutex[0], shared[0])).toBe(0);
    await fixture.redis.del(audit);
  });

  test("the audit keeps the last 1 000 records", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, requester(1));
    const members = Array.from({ length: 1_000 }, (_, i) => [String(i + 1), `${i + 1} 1 broken 1 {}`]);
    await fixture.redis.zadd(audit, ...members.flat());
    await run([[keys, breakOf(first)]]);
    await run([[keys, breakOf(first)]]);
    expect(await fixture.redis.zcard(audit)).toBe(1_000);
    expect(await fixture.redis.zrange(audit, "0", "0")).toEqual(["2 1 broken 1 {}"]);
    expect((await fixture.redis.zrange(audit, "-1", "-1"))[0]).toContain(` broken ${first} `);
  });
});
