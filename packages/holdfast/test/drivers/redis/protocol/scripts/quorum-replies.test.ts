import { expect, test } from "vitest";

import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

onNodes("the answers of a quorum's node", (fixture) => {
  const us = requester(1);

  test("who is refused is told the number of the present grant, in a queue or not", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { fencingCount: 5 });
    expect(await fixture.run(keys, acquireOf(requester(2)))).toEqual([
      0,
      expect.any(Number),
      -1,
      us.token,
      "",
      first,
    ]);
    const asking = await fixture.queue(keys, requester(2));
    expect(asking).toEqual([
      0,
      expect.any(Number),
      0,
      us.token,
      expect.stringMatching(/^[\da-f]{40}$/),
      first,
    ]);
    const quiet = await fixture.run(keys, acquireOf(requester(3), { wait: "1" }).with(5, "2"));
    expect(quiet).toEqual([0, expect.any(Number), 1, us.token, "", first]);
  });

  test("who finds the lock free and is not the next is told the number of who is", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    await fixture.data.zadd(keys[1], 4, requester(4).member);
    const candidate = await fixture.micros();
    const [status, , , holder, , first] = await fixture.run(keys, acquireOf(requester(5)), candidate);
    expect([status, holder, first]).toEqual([0, requester(4).token, candidate]);
    expect(await fixture.received(4)).toHaveLength(1);
  });

  test("where the counter is gone, or the lock another library's, there is no number", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, us);
    await fixture.data.del(fenceOf(keys));
    expect(await fixture.run(keys, acquireOf(requester(2)))).toHaveLength(5);
    expect(await fixture.run(keys, ["extend", us.token, "30000", "", ""])).toEqual([1, 0]);
    expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), 0]);
    const other = fixture.lock();
    await fixture.data.set(other[0], "somebody else's");
    expect(await fixture.run(other, acquireOf(requester(2)))).toEqual([0, -1, -1, "somebody else's", ""]);
  });

  test("who extends or asks whether it still holds is told its number, or why not", async () => {
    const keys = fixture.lock();
    const { first } = await fixture.grant(keys, us, { fencingCount: 3 });
    expect(await fixture.run(keys, ["extend", us.token, "40000", "", ""])).toEqual([1, first]);
    expect(await fixture.run(keys, ["verify", us.token])).toEqual([1, expect.any(Number), first]);
    expect(await fixture.run(keys, ["extend", requester(2).token, "40000", "", ""])).toEqual([2]);
    expect(await fixture.run(keys, ["verify", requester(2).token])).toEqual([2]);
    await fixture.run(keys, ["breakGrant", String(first), "s", "stop"]);
    expect(await fixture.run(keys, ["extend", us.token, "40000", "", ""])).toEqual([3]);
    expect(await fixture.run(keys, ["extend", requester(2).token, "40000", "", ""])).toEqual([0]);
  });
});
