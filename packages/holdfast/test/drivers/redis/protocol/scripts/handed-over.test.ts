import { beforeAll, expect, test } from "vitest";

import type { LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import { asker, onNodes, type QuorumStage } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf, type Answer, type Asker } from "../../../../support/script-fixture.ts";

onNodes("a turn that is given to others", (stage) => {
  beforeAll(async () => {
    await stage.listen(2);
    await stage.listen(3);
  });

  test("nobody else waits: the next request is told that the vote is its, with new numbers", async () => {
    const keys = stage.lock();
    const old = await stage.grant(keys, asker(1), { want: 5 });
    const [asked, released] = await give(stage, keys, asker(1), asker(3));
    expect([asked?.[0], asked?.[2], asked?.[3]]).toEqual([0, 0, asker(1).token]);
    expect(released).toEqual([1, 0, asker(3).token]);
    const [message = ""] = await stage.heard(3);
    expect(message).toContain(asker(3).token);
    expect(Number(message.split(" ")[2])).toBeGreaterThan(old.last);
    expect(await stage.data.get(keys[0])).toBe(asker(3).token);
    expect(await stage.data.zrange(keys[1])).toEqual([]);
  });

  test("who waited before gets the lock, and the next request the place behind", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    await stage.queue(keys, asker(2));
    await give(stage, keys, asker(1), asker(3));
    expect(await stage.data.get(keys[0])).toBe(asker(2).token);
    expect(await stage.data.zrange(keys[1])).toEqual([asker(3).member]);
    expect(await stage.heard(2)).toHaveLength(1);
  });

  test("the bound on the queue does not hold for it, and holds for others", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(9));
    await stage.queue(keys, asker(2));
    const past = await stage.ask(keys, acquireOf(asker(30), { wait: "3" }), 0, 1);
    expect([past[0], past[2]]).toEqual([0, 1]);
    expect(await stage.ask(keys, acquireOf(asker(31), { wait: "2" }), 0, 1)).toEqual([2]);
  });

  test("a lock that was lost to another is not given up", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(4));
    const [asked, released] = await give(stage, keys, asker(1), asker(3));
    expect([asked?.[0], asked?.[2], asked?.[3]]).toEqual([0, 0, asker(4).token]);
    expect(released).toEqual([0, 0, asker(4).token]);
  });
});

async function give(stage: QuorumStage, keys: LockKeys, old: Asker, next: Asker): Promise<Answer[]> {
  const { answers } = await stage.call([
    [keys, acquireOf(next, { wait: "3" }), 0],
    [keys, ["release", old.token, ""], 0],
  ]);
  return answers;
}
