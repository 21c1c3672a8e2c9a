import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

import type { Script } from "../../../../src/drivers/redis/protocol/script.ts";
import * as scripts from "../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { commandsOfScripts, ownCommands } from "../../../support/commands.ts";

/** The version of Redis that introduced each command that the library may use. Valkey has all of 7.2. */
const since: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    "config del eval evalsha exists get hdel hexists hget hgetall hmget hset info pexpire pexpireat pttl publish"
      .concat(
        " getrange hscan scan set subscribe time type zadd zcard zrange zrangebyscore zrank zrem zremrangebyscore zscore",
      )
      .split(" ")
      .map((command) => [command, 2.8]),
  ),
  unlink: 4,
  zpopmin: 5,
  cluster: 3,
  asking: 3,
  readonly: 3,
  wait: 3,
  spublish: 7,
  ssubscribe: 7,
};

/** The arguments that change what a command does, with the version of Redis that introduced them. */
const sinceOfWords: Readonly<Record<string, number>> = {
  "set NX": 2.6,
  "set PX": 2.6,
  "set KEEPTTL": 6,
  "scan MATCH": 2.8,
  "scan COUNT": 2.8,
  "hscan COUNT": 2.8,
  "zadd NX": 3,
  "zrange WITHSCORES": 1.2,
  "zrangebyscore LIMIT": 1.2,
  "zrangebyscore WITHSCORES": 1.2,
};

const oldest = 6.2;
/** Used only if the server reports its support. */
const detected = ["spublish", "ssubscribe"];

const folder = fileURLToPath(new URL("../../../../src/drivers/redis", import.meta.url));
const sources = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ts"));
const texts = await Promise.all(sources.map((file) => readFile(join(folder, file), "utf8")));

describe("the library uses", () => {
  test("only commands of Redis 6.2, except detected ones", () => {
    const used = new Set([...commandsOfScripts(), ...ownCommands, ...commandsOfAdapters()]);
    expect(used.size).toBeGreaterThan(25);
    const unknown = Array.from(used).filter((command) => since[command] === undefined);
    expect(unknown).toEqual([]);
    const newer = Array.from(used).filter((command) => (since[command] as number) > oldest);
    expect(newer.sort()).toEqual(detected);
  });

  test("only forms of commands of Redis 6.2", () => {
    const words = new Set(Object.values(scripts).flatMap(wordsOf));
    expect(words.size).toBeGreaterThan(3);
    const newer = Array.from(words).filter((word) => !((sinceOfWords[word] as number) <= oldest));
    expect(newer).toEqual([]);
  });

  test("only functions of scripts of Redis 6.2", () => {
    const functions = new Set(
      Object.values(scripts).flatMap(({ source }) => source.match(/redis\.\w+/g) as string[]),
    );
    const known = ["redis.call", "redis.error_reply", "redis.pcall"];
    expect(Array.from(functions).sort()).toEqual(known);
    for (const { source } of Object.values(scripts)) {
      expect(source.startsWith("#!")).toBe(false); // flags of scripts came with Redis 7
    }
  });

  test("features of the server's version, decided in one place", () => {
    const places = sources.filter((_file, index) =>
      /(parseInt|Number)\(version/.test(texts[index] as string),
    );
    expect(places).toEqual(["server/handshake.ts"]);
  });
});

test.each(["redis.call(ARGV[1], KEYS[1])", "call(ARGV[1], KEYS[1])", "run(redis.call, 'GET')"])(
  "a command with a computed name is found: %s",
  (call) => {
    const script: Script = { name: "s", sha1: "", source: `local call = redis.pcall\nreturn ${call}\n` };
    expect(() => commandsOfScripts([script])).toThrow("s runs a command whose name is not written out");
  },
);

/** Plain commands that the adapters and their callers send by `command(...)`. */
function commandsOfAdapters(): string[] {
  return texts.flatMap((text) =>
    Array.from(text.matchAll(/\.command\(\s*"([A-Z]+)"/g), ([, command = ""]) => command.toLowerCase()),
  );
}

/** The text between one call and the next has the call's arguments. Other capitals in that text do no harm. */
function wordsOf({ source }: Script): string[] {
  return Array.from(
    source.matchAll(/(?:redis\.p?|\b)call\('([A-Z]+)'([^]*?)(?=redis\.|\bcall\b|$)/g),
  ).flatMap(([, command = "", rest = ""]) =>
    Array.from(rest.matchAll(/'([A-Z]+)'/g), ([, word]) => `${command.toLowerCase()} ${word}`),
  );
}
