import { createHash } from "node:crypto";

import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../src/drivers/redis/clients/connection.ts";
import type { Script } from "../../src/drivers/redis/protocol/script.ts";
import { onRedis } from "../support/servers.ts";
import { commands } from "./commands.ts";

/** The allowed difference of a TTL or an expiry, in ms. */
const toleranceMs = 500;

onRedis("the fake Redis beside a real one", () => {
  let server: RedisServer;
  let real: Redis;
  let realConnection: Connection;
  let micros = 0;
  const now = (): number => micros / 1000;
  const clock = { now, wall: now, setTimer: () => undefined, clearTimer: () => undefined };
  let fake = new FakeRedis({ clock });

  beforeAll(async () => {
    server = await startRedis();
    real = server.client();
    realConnection = detectConnection(real);
  });
  afterAll(() => server.stop());
  beforeEach(reset);

  async function reset(): Promise<void> {
    await real.flushall();
    await real.config("SET", "maxmemory", "0");
    fake = new FakeRedis({ clock });
    const [seconds, rest] = await real.time();
    micros = Number(seconds) * 1_000_000 + Number(rest);
  }

  test("answers single commands with the same replies and errors", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 1, maxLength: 30 }), async (sequence) => {
        await reset();
        for (const [name, ...args] of sequence) {
          const expected = await outcome(() => real.call(name, ...args));
          const own = await outcome(() => fake.connect().command(name, args));
          expect(plain(name, own, expected), `${name} ${args.join(" ")}`).toEqual(plain(name, expected));
          seen.add(`${name} ${String(expected).startsWith("ReplyError") ? "fails" : "answers"}`);
        }
      }),
      { numRuns: 1_500 },
    );
    expect(seen).toContain("ZADD answers");
    expect(seen).toContain("ZADD fails");
    expect(seen.size).toBeGreaterThan(50);
  });

  test("answers the commands in scripts with the same replies and errors", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 1, maxLength: 30 }), async (sequence) => {
        await reset();
        const rest = sequence.filter(([name]) => name !== "CONFIG");
        for (const script of [calling, catching]) {
          for (const words of rest) {
            const expected = await outcome(() => realConnection.run(script, [], words));
            const own = await outcome(() => fake.connect().run(script, [], words));
            expect(plain(words[0], own, expected), words.join(" ")).toEqual(plain(words[0], expected));
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test("refuses the same commands while its memory is full, alone and in one script", async () => {
    const refused = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 1, maxLength: 15 }), async (sequence) => {
        await reset();
        const rest = sequence.filter(([name]) => !["CONFIG", "FLUSHALL"].includes(name));
        await real.config("SET", "maxmemory", "1");
        fake.setMemoryFull(true);
        for (const [name, ...args] of rest) {
          const expected = await outcome(() => real.call(name, ...args));
          const own = await outcome(() => fake.connect().command(name, args));
          expect(String(own).includes(" OOM "), `${name} ${args.join(" ")}`).toBe(
            String(expected).includes(" OOM "),
          );
          if (String(own).includes(" OOM ")) {
            refused.add(name);
          }
        }
        const expected = await outcome(() => realConnection.run(errorsOf, [], [JSON.stringify(rest)]));
        const own = await outcome(() => fake.connect().run(errorsOf, [], [JSON.stringify(rest)]));
        expect(own, JSON.stringify(rest)).toEqual(expected);
      }),
      { numRuns: 500 },
    );
    expect([...refused].toSorted()).toEqual(["HSET", "SET", "ZADD"]);
  });

  describe("runs Lua as there:", () => {
    for (const [source, ...args] of scripts) {
      test(`${source} ${args.join(" ")}`, async () => {
        const script = scriptOf(source);
        const expected = await outcome(() => realConnection.run(script, ["k1", "k2"], args));
        const own = await outcome(() => fake.connect().run(script, ["k1", "k2"], args));
        expect(own).toEqual(expected);
      });
    }
  });
});

const calling = scriptOf("return redis.call(unpack(ARGV))");
const catching = scriptOf(
  "local found = redis.pcall(unpack(ARGV)) return { type(found), type(found) == 'table' and found.err or found, 'end' }",
);

/** The errors of commands in one script. */
const errorsOf = scriptOf(`
local errors = {}
for i, words in ipairs(cjson.decode(ARGV[1])) do
  local found = redis.pcall(unpack(words))
  errors[i] = type(found) == 'table' and found.err or ''
end
return errors`);

/** The features of Lua, and of Lua in Redis, that scripts use. */
const scripts: readonly (readonly [source: string, ...args: string[]])[] = [
  ["return { 1, 3.99, -3.99, 'text', false, true, { 'in', { 'in' } }, nil, 'behind' }"],
  ["return nil"],
  ["return true"],
  ["return {}"],
  ["return { ok = 'fine' }"],
  ["return { err = 'MINE own words' }"],
  ["return redis.error_reply('MINE own words')"],
  ["return redis.error_reply('-MINE own words')"],
  ["return redis.status_reply('fine')"],
  ["return { { err = 'MINE inner' }, 1 }"],
  ["return { KEYS[1], KEYS[2], KEYS[3], ARGV[1] }", "ü"],
  ["return { #KEYS, #ARGV, #ARGV[1] }", "ü"],
  ["error('KIND of mine', 0)"],
  ["error('with its place')"],
  ["error({ err = 'MINE own words' })"],
  ["local ok, failure = pcall(error, { err = 'MINE' }) return { tostring(ok), failure.err }"],
  ["local ok, failure = pcall(redis.call, 'NOSUCH') return { tostring(ok), type(failure), failure.err }"],
  ["local ok, failure = pcall(function() return nil .. 'x' end) return { tostring(ok), failure }"],
  ["local nothing = nil\nreturn nothing.field"],
  ["\n\nreturn redis.call('HSET', 'k', 'f', 'v') + redis.call('GET', 'k')"],
  ["local function deep()\nreturn redis.call('NOSUCH')\nend\nlocal found = deep()\nreturn found"],
  ["return undefined_variable"],
  ["undefined_variable = 1"],
  ["return redis.call()"],
  ["return redis.call('GET', {})"],
  ["return redis.call('GET', nil)"],
  ["return redis.call('SET', 'k', 17) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 1.1) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 1e14 + 0.3) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 2 ^ 60) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 1e-7) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 1700000000123456) and redis.call('GET', 'k')"],
  ["return redis.call('SET', 'k', 1 / 0) and redis.call('GET', 'k')"],
  ["return { tostring(2 ^ 53), tostring(1700000000123456), tostring(123456789012345), tostring(0.1) }"],
  [
    "return { string.format('%.0f', 2 ^ 53), string.format('%d', 2 ^ 53), string.format('%d', '17'), string.format('%d', -3) }",
  ],
  ["return { string.format('%.14g', 1 / 3), string.format('%s %5.2f|%-5s|%q', 'a', 1.005, 'b', 'c') }"],
  [
    "return { tonumber('0x10'), tonumber(' 7 '), tostring(tonumber('')), tostring(tonumber('1e5x')), tonumber('1e5') }",
  ],
  ["return { 7 % 3, -7 % 3, 7 % -3, 2 ^ 10, math.floor(-1.5), math.max(3, '7' + 0, 5), 10 / 4 * 4 }"],
  ["return { '10' + 5, 10 .. 5, '0x1F' + 0, #'abc', tostring('10' == 10), tostring('a' < 'b') }"],
  ["return { string.match(ARGV[1], '^(%x+):(%a)(%d*)/?(%d*):%d+') }", "00ff:s2/3:17"],
  ["return { string.find(ARGV[1], '%d+') }", "abc 123 ü"],
  ["return { string.byte(ARGV[1], 1, -1) }", "aü"],
  [
    "local found = {} for part in string.gmatch(ARGV[1], '%a+') do found[#found + 1] = part end return found",
    "a b c",
  ],
  ["return { string.gsub('hello', 'l', { l = 'L' }) }"],
  ["return { select('#', unpack(ARGV, 2)), unpack(ARGV, 2) }", "a", "b", "c"],
  ["return { table.concat({ 1, 2, 'x' }, ','), next({}) == nil and 'empty' or 'full' }"],
  ["local t = { 3, 1, 2 } table.sort(t) table.insert(t, 9) return t"],
  ["return cjson.decode(ARGV[1])", '["a","ü","\\u00fc\\n","\\"/",7,-1.5,true,["in"]]'],
  ["return cjson.encode({ ARGV[1], 'b/', { 'c' } })", 'ü"\\\n\u0001\u007f'],
  ["return cjson.encode({})"],
  ["return { type(redis.call('TIME')), #redis.call('TIME'), type(redis.call('TIME')[1]) }"],
  ["return { tostring(os), tostring(io) }"],
  ["return redis.call('CONFIG', 'GET', 'appendfsync')"],
  ["return {"],
];

function scriptOf(source: string): Script {
  return { name: "a test", sha1: createHash("sha1").update(source).digest("hex"), source };
}

/** The reply, or the message of the error. */
async function outcome(action: () => unknown): Promise<unknown> {
  try {
    return spelledOut(await action());
  } catch (error) {
    return String(error);
  }
}

function spelledOut(answer: unknown): unknown {
  return Array.isArray(answer) ? answer.map(spelledOut) : answer instanceof Error ? String(answer) : answer;
}

/** The reply without times and without the order of a hash. @param other the reply of the other server, if known */
function plain(name: string, answer: unknown, other?: unknown): unknown {
  if (typeof answer === "number" && typeof other === "number" && name === "PTTL") {
    return answer > 0 && Math.abs(answer - other) <= toleranceMs ? other : answer;
  } else if (name.startsWith("Z") && Array.isArray(answer)) {
    return answer.flat(); // RESP3 pairs members with scores, and scripts use RESP2
  } else if (Array.isArray(answer)) {
    const parts = Array.isArray(other) ? other : [];
    const items = answer.map((item, index) => plain(name, item, parts[index]));
    return name === "HGETALL" || name === "SCAN" ? items.map(String).toSorted() : items;
  }
  return answer;
}
