import { beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { requester, onNodes, type QuorumScriptFixture } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type ScriptReply, type Requester } from "../../../../support/script-fixture.ts";

onNodes("a release after a new request of the same client", (fixture) => {
  beforeAll(async () => {
    await fixture.listen(2);
    await fixture.listen(3);
  });

  test("notifies that request of its vote, with new numbers, if no other waiter is queued", async () => {
    const keys = fixture.lock();
    const old = await fixture.grant(keys, requester(1), { fencingCount: 5 });
    const [queued, released] = await requestAndRelease(fixture, keys, requester(1), requester(3));
    expect([queued?.[0], queued?.[2], queued?.[3]]).toEqual([0, 0, requester(1).token]);
    expect(released).toEqual([1, 0, requester(3).token]);
    const [message = ""] = await fixture.received(3);
    expect(message).toContain(requester(3).token);
    expect(Number(message.split(" ")[2])).toBeGreaterThan(old.last);
    expect(await fixture.data.get(keys[0])).toBe(requester(3).token);
    expect(await fixture.data.zrange(keys[1])).toEqual([]);
  });

  test("grants the lock to an earlier waiter, and queues the new request after it", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, requester(2));
    await requestAndRelease(fixture, keys, requester(1), requester(3));
    expect(await fixture.data.get(keys[0])).toBe(requester(2).token);
    expect(await fixture.data.zrange(keys[1])).toEqual([requester(3).member]);
    expect(await fixture.received(2)).toHaveLength(1);
  });

  test("exempts that request from the bound on the queue, and no other", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(9));
    await fixture.queue(keys, requester(2));
    const past = await fixture.run(keys, acquireOf(requester(30), { wait: "3" }), 0, 1);
    expect([past[0], past[2]]).toEqual([0, 1]);
    expect(await fixture.run(keys, acquireOf(requester(31), { wait: "2" }), 0, 1)).toEqual([2]);
  });

  test("does not release a lock that another client has acquired", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(4));
    const [queued, released] = await requestAndRelease(fixture, keys, requester(1), requester(3));
    expect([queued?.[0], queued?.[2], queued?.[3]]).toEqual([0, 0, requester(4).token]);
    expect(released).toEqual([0, 0, requester(4).token]);
  });
});

async function requestAndRelease(
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
