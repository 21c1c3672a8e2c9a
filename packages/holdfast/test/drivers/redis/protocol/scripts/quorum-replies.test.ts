import { expect, test } from "vitest";

import { requester, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

onNodes("the replies of a quorum's node", (fixture) => {
  const us = requester(1);

  test("a refused request gets the number of the present grant, queued or not", async () => {
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
    const queued = await fixture.queue(keys, requester(2));
    expect(queued).toEqual([
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

  test("a request that finds the lock free but is not next gets the number of the next holder", async () => {
    await fixture.listen(4);
    const keys = fixture.lock();
    await fixture.data.zadd(keys[1], 4, requester(4).member);
    const candidate = await fixture.micros();
    const [status, , , holder, , first] = await fixture.run(keys, acquireOf(requester(5)), candidate);
    expect([status, holder, first]).toEqual([0, requester(4).token, candidate]);
    expect(await fixture.received(4)).toHaveLength(1);
  });

  test("without the counter, or with a lock of another library, there is no number", async () => {
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

  test("an extension and a verify get the number of the grant, or the reason of its loss", async () => {
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
