import { beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { requester, onNodes, type QuorumScriptFixture } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type ScriptReply, type Requester } from "../../../../support/script-fixture.ts";

onNodes("a turn that is given to others", (fixture) => {
  beforeAll(async () => {
    await fixture.listen(2);
    await fixture.listen(3);
  });

  test("nobody else waits: the next request is told that the vote is its, with new numbers", async () => {
    const keys = fixture.lock();
    const old = await fixture.grant(keys, requester(1), { fencingCount: 5 });
    const [asked, released] = await give(fixture, keys, requester(1), requester(3));
    expect([asked?.[0], asked?.[2], asked?.[3]]).toEqual([0, 0, requester(1).token]);
    expect(released).toEqual([1, 0, requester(3).token]);
    const [message = ""] = await fixture.received(3);
    expect(message).toContain(requester(3).token);
    expect(Number(message.split(" ")[2])).toBeGreaterThan(old.last);
    expect(await fixture.data.get(keys[0])).toBe(requester(3).token);
    expect(await fixture.data.zrange(keys[1])).toEqual([]);
  });

  test("who waited before gets the lock, and the next request the place behind", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    await give(fixture, keys, requester(1), requester(3));
    expect(await fixture.data.get(keys[0])).toBe(requester(2).token);
    expect(await fixture.data.zrange(keys[1])).toEqual([requester(3).member]);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("the bound on the queue does not hold for it, and holds for others", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await fixture.queue(keys, requester(2));
    const past = await fixture.run(keys, acquireOf(requester(30), { wait: "3" }), 0, 1);
    expect([past[0], past[2]]).toEqual([0, 1]);
    expect(await fixture.run(keys, acquireOf(requester(31), { wait: "2" }), 0, 1)).toEqual([2]);
  });

  test("a lock that was lost to another is not given up", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(4));
    const [asked, released] = await give(fixture, keys, requester(1), requester(3));
    expect([asked?.[0], asked?.[2], asked?.[3]]).toEqual([0, 0, requester(4).token]);
    expect(released).toEqual([0, 0, requester(4).token]);
  });
});

async function give(
  fixture: QuorumScriptFixture,
  keys: LockKeys,
  old: Requester,
  next: Requester,
): Promise<ScriptReply[]> {
  const { answers } = await fixture.call([
    [keys, acquireOf(next, { wait: "3" }), 0],
    [keys, ["release", old.token, ""], 0],
  ]);
  return answers;
}
