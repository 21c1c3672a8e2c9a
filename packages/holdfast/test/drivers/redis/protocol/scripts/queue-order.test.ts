import { expect, test } from "vitest";

import { asker, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

/** At most so many waiters that are gone are passed over at once. */
const mostGone = 16;

onNodes("whose turn it is", (stage) => {
  test("a holder's release that meets 16 waiters past their deadlines leaves the lock free", async () => {
    const keys = stage.lock();
    await stage.grant(keys, asker(1));
    for (let n = 0; n < mostGone; n += 1) {
      await stage.data.zadd(keys[1], n, asker(100 + n, { ticket: n, deadline: Date.now() - 1_000 }).member);
    }
    expect(await stage.ask(keys, ["release", asker(1).token, asker(1).terms])).toEqual([1, 1, ""]);
    expect(await stage.data.get(keys[0])).toBeNull();
  });

  test("who is granted one lock of a call is not granted the next as well", async () => {
    const [one, other] = [stage.lock(), stage.lock()];
    await stage.listen(2);
    await stage.listen(3);
    await stage.grant(one, asker(1));
    await stage.data.zadd(one[1], 2, asker(2).member);
    await stage.data.zadd(other[1], 3, asker(3).member);
    await stage.call([
      [one, ["release", asker(1).token, asker(1).terms], 0],
      [other, acquireOf(asker(4), { wait: "1" }), 0],
    ]);
    expect(await stage.data.get(one[0])).toBe(asker(2).token);
    expect(await stage.data.get(other[0])).toBe(asker(3).token);
    expect(await stage.heard(2)).toHaveLength(1);
    expect(await stage.heard(3)).toHaveLength(1);
  });
});
