import fc from "fast-check";

type CommandArguments = readonly [name: string, ...args: string[]];

/** Keys of every type, because most commands must also meet a key of the wrong type. */
const keys = fc.constantFrom("a", "b", "c");
const texts = fc.constantFrom("", "x", "y", "ü", "10", "07", "-3", "1.5");
const fields = fc.constantFrom("f", "g", "h", "ü");
const scores = fc.constantFrom(
  "0",
  "3",
  "-7",
  "1.5",
  "1e3",
  "0.1",
  "1e-7",
  "123456789012345678",
  "inf",
  "-inf",
  "x",
  "",
);
const bounds = fc.constantFrom("-inf", "+inf", "(3", "0", "3", "1.5", "(-7", "x");
const indexes = fc.constantFrom("0", "1", "2", "-1", "-2", "99", "-99", "x");
const ttls = fc.constantFrom("20000", "40000", "80000", "0", "-5", "x", "");
const conditions = fc.subarray(["NX", "XX", "GT", "LT", "CH"], { maxLength: 2 });
/** GT and LT are used with absolute times only, because the present time of the two servers differs. */
const expiryConditions = fc.constantFrom<string[]>([], ["NX"], ["XX"], ["GT"], ["LT"], ["gt"], ["OTHER"]);

function words(
  name: string,
  ...parts: readonly fc.Arbitrary<string | readonly string[]>[]
): fc.Arbitrary<CommandArguments> {
  return fc.tuple(...parts).map((args) => [name, ...args.flat()]);
}

function several(part: fc.Arbitrary<string>): fc.Arbitrary<string[]> {
  return fc.array(part, { minLength: 0, maxLength: 4 });
}

const withScores = fc.constantFrom<string[]>([], ["WITHSCORES"], ["withscores"]);
const limits = fc.constantFrom<string[]>(
  [],
  ["LIMIT", "0", "2"],
  ["LIMIT", "1", "-1"],
  ["WITHSCORES", "LIMIT", "-1", "2"],
);

/** Any command of the fake Redis, except the commands about the server itself. */
export const commands: fc.Arbitrary<CommandArguments> = fc.oneof(
  words("GET", keys),
  words("SET", keys, texts),
  words(
    "SET",
    keys,
    texts,
    fc.constantFrom<string[]>(
      [],
      ["PX", "20000"],
      ["px", "0"],
      ["PX", "x"],
      ["NX"],
      ["XX"],
      ["PX", "40000", "NX"],
    ),
  ),
  words("DEL", several(keys)),
  words("UNLINK", several(keys)),
  words("EXISTS", several(keys)),
  words("TYPE", keys),
  words("PTTL", keys),
  words("PERSIST", keys),
  words("PEXPIRE", keys, ttls, fc.constantFrom<string[]>([], ["NX"], ["xx"], ["OTHER"])),
  words("PEXPIREAT", keys, fc.constantFrom("1", "88888888888888", "99999999999999", "x"), expiryConditions),
  words("HSET", keys, several(fc.oneof(fields, texts))),
  words("HGET", keys, fields),
  words("HMGET", keys, several(fields)),
  words("HGETALL", keys),
  words("HEXISTS", keys, fields),
  words("HLEN", keys),
  words("HDEL", keys, several(fields)),
  words("ZADD", keys, conditions, scores, texts),
  words("ZADD", keys, conditions, several(fc.oneof(scores, texts))),
  words("ZREM", keys, several(texts)),
  words("ZPOPMIN", keys, fc.constantFrom<string[]>([], ["0"], ["2"], ["-1"], ["x"], ["1", "2"])),
  words("ZREMRANGEBYSCORE", keys, bounds, bounds),
  words("ZCARD", keys),
  words("ZRANK", keys, texts),
  words("ZSCORE", keys, texts),
  words("ZRANGE", keys, indexes, indexes, withScores),
  words("ZRANGEBYSCORE", keys, bounds, bounds, limits),
  words(
    "SCAN",
    fc.constantFrom("0", "x"),
    fc.constantFrom<string[]>([], ["MATCH", "[ab]"], ["COUNT", "100"], ["COUNT", "0"], ["MATCH"]),
  ),
  words("PUBLISH", fc.constant("channel"), texts),
  words("SPUBLISH", fc.constant("channel"), texts),
  words("FLUSHALL"),
  words("NOSUCH", several(texts)),
  words("CONFIG", fc.constant("GET"), fc.constantFrom("appendfsync", "nosuch")),
);
