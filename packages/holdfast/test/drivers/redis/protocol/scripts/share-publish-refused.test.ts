import { expect, test } from "vitest";

import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const reader = { lockMode: "r" };
const writer = { lockMode: "w" };

onRedis("a publish that the server refuses", () => {
  test("requeues the waiter and fails: no queue entry is lost, and no grant results", async () => {
    const fixture = await ScriptFixture.open();
    try {
      await fixture.redis.call("ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "resetchannels");
      const mute = detectConnection(fixture.server.client({ username: "mute", password: "x" }));
      const keys = fixture.lock();
      await fixture.listen(2);
      await fixture.grant(keys, requester(1, writer));
      await fixture.queue(keys, requester(2, reader));
      const [answer] = await fixture.batch([[keys, ["release", requester(1, writer).token, "", "1"]]], {
        connection: mute,
      });
      expect(answer).toEqual(["error", expect.stringMatching(/can't publish/)]);
      expect(await fixture.redis.zrange(keys[1], "0", "-1", "WITHSCORES")).toEqual([
        requester(2, reader).member,
        "2",
      ]);
      expect(await fixture.redis.exists(keys[0])).toBe(0);
      expect(await fixture.run(keys, ["release", requester(1, writer).token, "", "1"])).toMatchObject({
        0: 0,
        1: 0,
      });
      expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([requester(2, reader).token]);
      expect(await fixture.received(2)).toHaveLength(1);
    } finally {
      await fixture.close();
    }
  });

  test("does not extend the queue's TTL by retries", async () => {
    const fixture = await ScriptFixture.open();
    try {
      await fixture.redis.call("ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "resetchannels");
      const mute = detectConnection(fixture.server.client({ username: "mute", password: "x" }));
      const keys = fixture.lock();
      await fixture.redis.zadd(keys[1], 2, requester(2, reader).member);
      await fixture.redis.pexpire(keys[1], 20_000);
      for (const args of [
        acquireOf(requester(9, reader), { wait: "1" }),
        acquireOf(requester(9, reader)),
        ["release", requester(8, reader).token, "", "1"],
      ]) {
        const [answer] = await fixture.batch([[keys, args]], { connection: mute });
        expect(answer, args[0]).toEqual(["error", expect.stringMatching(/can't publish/)]);
        expect(await fixture.redis.pttl(keys[1]), args[0]).toBeLessThanOrEqual(20_000);
        expect(await fixture.redis.zscore(keys[1], requester(2, reader).member), args[0]).toBe("2");
      }
    } finally {
      await fixture.close();
    }
  });

  test("makes a release skip a reader whose kind of channel the server lacks", async () => {
    const fixture = await ScriptFixture.open(["--rename-command", "SPUBLISH", ""]);
    try {
      const keys = fixture.lock();
      await fixture.listen(3, "p");
      await fixture.grant(keys, requester(1, writer));
      await fixture.queue(keys, requester(2, reader));
      await fixture.queue(keys, requester(3, { ...reader, kind: "p" }));
      expect(await fixture.run(keys, ["release", requester(1, writer).token, "", "1"])).toMatchObject({
        0: 1,
        1: 0,
      });
      expect(await fixture.redis.zrange(keys[0], "0", "-1")).toEqual([requester(3, reader).token]);
      expect(await fixture.redis.exists(keys[1])).toBe(0);
      expect(await fixture.received(3)).toHaveLength(1);
    } finally {
      await fixture.close();
    }
  });
});
