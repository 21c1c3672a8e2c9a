import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { KeySpace } from "../../../../src/drivers/redis/keys.ts";
import { onRedis } from "../../../support/servers.ts";
import { asker, ScriptStage } from "./stage.ts";

onRedis("the keys that the script derives", () => {
  let stage: ScriptStage;
  beforeAll(async () => {
    stage = await ScriptStage.open();
  });
  beforeEach(() => stage.redis.flushall());
  afterAll(() => stage.close());

  const texts = [
    "k",
    "{a}",
    "{a}b",
    "a{b}c",
    "{}k",
    "{}{a}",
    "a}b{c",
    "a}{b}",
    "{a",
    "a{{b}}",
    "schlüssel",
    'a"\\\n\u0000b',
  ];

  for (const text of texts) {
    test(`of ${JSON.stringify(text)} are those that the client knows`, async () => {
      const keys = new KeySpace("", "lock:").keysOf(text);
      const [K, queue, fence, info] = keys;
      await stage.grant(keys, asker(1), { words: JSON.stringify(["owner", "ada"]) });
      await stage.queue(keys, asker(2));
      expect((await stage.redis.keys("*")).toSorted()).toEqual([K, queue, fence, info].toSorted());
      await stage.ask(keys, ["release", asker(2).token, asker(2).terms]);
      await stage.ask(keys, ["release", asker(1).token, asker(1).terms]);
      expect(await stage.redis.keys("*")).toEqual([fence]);
    });
  }
});
