import { expect, test } from "vitest";

import { requester, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

/** The most dead waiters that one call skips. */
const mostGone = 16;

onNodes("the order of grants", (fixture) => {
  test("a holder's release that meets 16 waiters past their deadlines leaves the lock free", async () => {
    const keys = fixture.lock();
    await fixture.grant(keys, requester(1));
    for (let n = 0; n < mostGone; n += 1) {
      await fixture.data.zadd(
        keys[1],
        n,
        requester(100 + n, { ticket: n, deadline: Date.now() - 1_000 }).member,
      );
    }
    expect(await fixture.run(keys, ["release", requester(1).token, requester(1).entryTail])).toEqual([
      1,
      1,
      "",
    ]);
    expect(await fixture.data.get(keys[0])).toBeNull();
  });

  test("a client that is granted one lock of a call is not granted the next as well", async () => {
    const [one, other] = [fixture.lock(), fixture.lock()];
    await fixture.listen(2);
    await fixture.listen(3);
    await fixture.grant(one, requester(1));
    await fixture.data.zadd(one[1], 2, requester(2).member);
    await fixture.data.zadd(other[1], 3, requester(3).member);
    await fixture.call([
      [one, ["release", requester(1).token, requester(1).entryTail], 0],
      [other, acquireOf(requester(4), { wait: "1" }), 0],
    ]);
    expect(await fixture.data.get(one[0])).toBe(requester(2).token);
    expect(await fixture.data.get(other[0])).toBe(requester(3).token);
    expect(await fixture.received(2)).toHaveLength(1);
    expect(await fixture.received(3)).toHaveLength(1);
  });
});
