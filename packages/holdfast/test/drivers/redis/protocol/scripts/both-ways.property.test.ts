import { setTimeout as pause } from "node:timers/promises";

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { onRedis } from "../../../../support/servers.ts";
import { argumentsOf } from "../../../../fake-redis/arguments.ts";
import type { Family } from "../../../../fake-redis/operations.ts";
import { steps } from "../../../../fake-redis/steps.ts";
import { ScriptFixture } from "../../../../support/script-fixture.ts";

/** Operations with the first fields of their replies that each family covers. */
const reached: Readonly<Record<Family, readonly string[]>> = {
  mutex: [
    "acquire 0",
    "acquire 1",
    "acquire 2",
    "acquire 4",
    "release 0",
    "release 1",
    "extend 1",
    "breakGrant 1",
  ],
  "read-write": ["acquire 0", "acquire 1", "acquire 4", "release 0", "release 1", "extend 1", "downgrade 1"],
  semaphore: ["acquire 0", "acquire 1", "acquire 4", "release 0", "release 1", "extend 1", "setLimit 1"],
  latch: ["countDown 1", "waitLatch 1", "waitLatch 2", "leaveLatchQueue 1"],
};

onRedis("an operation", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(0);
    await fixture.listen(1, "p");
  });
  afterAll(() => fixture.close());

  for (const family of ["mutex", "read-write", "semaphore", "latch"] as const satisfies readonly Family[]) {
    test(`on a ${family} has the same reply and effect alone and beside others`, async () => {
      const seen = new Set<string>();
      await fc.assert(
        fc.asyncProperty(steps(false, family), async (sequence) => {
          const locks = {
            alone: [fixture.lock(), fixture.lock()] as const,
            beside: [fixture.lock(), fixture.lock()] as const,
          };
          for (const step of sequence) {
            if (step.type !== "operate") {
              continue;
            }
            for (const operation of step.operations) {
              await pause(2); // two entries that end at the same time are ordered by their tokens
              const { lock, name } = operation;
              const now = Date.now();
              const keys = [locks.alone[lock], locks.beside[lock]] as [LockKeys, LockKeys];
              const [one, own] = (await Promise.all(
                keys.map(async (of) => [name, ...(await argumentsOf(fixture.redis, of, operation, false))]),
              )) as [string[], string[]];
              const [alone] = await fixture.batch([[keys[0], one]], { bound: step.bound });
              const received = await messages();
              const [first, beside, last] = await fixture.batch(
                [
                  [fixture.lock(), ["inspect"]],
                  [keys[1], own],
                  [fixture.lock(), ["inspect"]],
                ],
                { bound: step.bound },
              );
              expect([first?.[0], last?.[0]]).toEqual(["", ""]);
              seen.add(`${name} ${String(Array.isArray(alone) ? alone[0] : alone)}`);
              expect(plain(beside, keys[1], now), own.join(" ")).toEqual(plain(alone, keys[0], now));
              expect(plain(await messages(), keys[1], now)).toEqual(plain(received, keys[0], now));
              expect(await dataOf(keys[1], now)).toEqual(await dataOf(keys[0], now));
            }
          }
        }),
        { seed: 1, numRuns: 20, interruptAfterTimeLimit: 100_000 }, // a busy machine compares fewer operations
      );
      expect([...seen]).toEqual(expect.arrayContaining([...reached[family]]));
    });
  }

  async function messages(): Promise<string[][]> {
    return [await fixture.received(0), await fixture.received(1)];
  }

  async function dataOf(keys: LockKeys, now: number): Promise<unknown> {
    const found = (await fixture.redis.eval(dumpAll, keys.length, ...keys)) as unknown[];
    return plain(found, keys, now);
  }
});

/**
 * Two locks and two moments differ in their keys, and in numbers that are times. Remaining times are compared
 * in units of ten seconds, because no TTL of the operations is near a bound. Both sides need the same `now`, because a constant number may
 * look like a time near a bound.
 */
function plain(value: unknown, [K]: LockKeys, now: number): unknown {
  const of = (item: unknown): unknown => {
    if (Array.isArray(item)) {
      return item.map(of);
    } else if (typeof item === "string") {
      return item
        .replaceAll(K, "K")
        .replace(/\d{16}/g, (number) => String(of(Number(number))))
        .replace(/\d{13}/g, (number) => String(of(Number(number))));
    } else if (typeof item === "number" && item > 1e15 && item < 2e15) {
      return "number";
    } else if (typeof item === "number" && item > 100) {
      const ms = item > 1e12 ? item - now : item;
      return `${Math.round((ms + 2_500) / 10_000)}0 s`;
    }
    return item;
  };
  return of(value);
}

const dumpAll = `
local read = {
  string = function(key) return redis.call('GET', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  hash = function(key)
    local found = {}
    for _, field in ipairs(redis.call('HKEYS', key)) do
      found[#found + 1] = field .. '=' .. redis.call('HGET', key, field)
    end
    table.sort(found)
    return found
  end,
}
local found = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  found[i] = kind == 'none' and { kind } or { kind, read[kind](key), redis.call('PTTL', key) }
end
return found`;
