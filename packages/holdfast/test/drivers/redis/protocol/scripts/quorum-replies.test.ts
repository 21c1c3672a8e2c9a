import { expect, test } from "vitest";

import { asker, fenceOf, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

onNodes("the answers of a quorum's node", (stage) => {
  const us = asker(1);

  test("who is refused is told the number of the present grant, in a queue or not", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { want: 5 });
    expect(await stage.ask(keys, acquireOf(asker(2)))).toEqual([
      0,
      expect.any(Number),
      -1,
      us.token,
      "",
      first,
    ]);
    const asking = await stage.queue(keys, asker(2));
    expect(asking).toEqual([
      0,
      expect.any(Number),
      0,
      us.token,
      expect.stringMatching(/^[\da-f]{40}$/),
      first,
    ]);
    const quiet = await stage.ask(keys, acquireOf(asker(3), { wait: "1" }).with(5, "2"));
    expect(quiet).toEqual([0, expect.any(Number), 1, us.token, "", first]);
  });

  test("who finds the lock free and is not the next is told the number of who is", async () => {
    await stage.listen(4);
    const keys = stage.lock();
    await stage.data.zadd(keys[1], 4, asker(4).member);
    const candidate = await stage.micros();
    const [status, , , holder, , first] = await stage.ask(keys, acquireOf(asker(5)), candidate);
    expect([status, holder, first]).toEqual([0, asker(4).token, candidate]);
    expect(await stage.heard(4)).toHaveLength(1);
  });

  test("where the counter is gone, or the lock another library's, there is no number", async () => {
    const keys = stage.lock();
    await stage.grant(keys, us);
    await stage.data.del(fenceOf(keys));
    expect(await stage.ask(keys, acquireOf(asker(2)))).toHaveLength(5);
    expect(await stage.ask(keys, ["extend", us.token, "30000", "", ""])).toEqual([1, 0]);
    expect(await stage.ask(keys, ["verify", us.token])).toEqual([1, expect.any(Number), 0]);
    const other = stage.lock();
    await stage.data.set(other[0], "somebody else's");
    expect(await stage.ask(other, acquireOf(asker(2)))).toEqual([0, -1, -1, "somebody else's", ""]);
  });

  test("who extends or asks whether it still holds is told its number, or why not", async () => {
    const keys = stage.lock();
    const { first } = await stage.grant(keys, us, { want: 3 });
    expect(await stage.ask(keys, ["extend", us.token, "40000", "", ""])).toEqual([1, first]);
    expect(await stage.ask(keys, ["verify", us.token])).toEqual([1, expect.any(Number), first]);
    expect(await stage.ask(keys, ["extend", asker(2).token, "40000", "", ""])).toEqual([2]);
    expect(await stage.ask(keys, ["verify", asker(2).token])).toEqual([2]);
    await stage.ask(keys, ["breakGrant", String(first), "s", "stop"]);
    expect(await stage.ask(keys, ["extend", us.token, "40000", "", ""])).toEqual([3]);
    expect(await stage.ask(keys, ["extend", asker(2).token, "40000", "", ""])).toEqual([0]);
  });
});
