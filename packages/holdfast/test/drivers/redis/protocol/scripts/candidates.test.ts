import { expect, test } from "vitest";

import { healthScript } from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { requester, candidateMicros, onNodes } from "../../../../support/quorum-script-fixture.ts";
import { acquireOf } from "../../../../support/script-fixture.ts";

onNodes("proposed numbers", (fixture) => {
  test("the reply has the server's time, its run and its uptime", async () => {
    const [runId, uptime] = (await fixture.connection.run(healthScript, [], [])) as [string, number];
    const before = await fixture.micros();
    const { header, answers } = await fixture.call([
      [fixture.lock(), acquireOf(requester(1)), 0],
      [fixture.lock(), ["inspect"], 0],
    ]);
    const after = await fixture.micros();
    expect(header).toEqual([expect.any(Number), runId, expect.any(Number)]);
    const [micros, , seconds] = header as [number, string, number];
    expect(micros).toBeGreaterThanOrEqual(before);
    expect(micros).toBeLessThanOrEqual(after);
    expect([0, 1]).toContain(seconds - uptime);
    expect(answers.map(([status]) => status)).toEqual([1, ""]);
  });

  test("a proposal near the server's time is the number, ahead of that time or not", async () => {
    for (const offset of [-500_000, -1, 0, 500_000]) {
      const candidate = (await fixture.micros()) + offset;
      const [status, first, last] = await fixture.run(
        fixture.lock(),
        acquireOf(requester(1), { fencingCount: 5 }),
        candidate,
      );
      expect([status, first, last]).toEqual([1, candidate, candidate + 4]);
    }
  });

  test("a proposal that is further off counts as a second ahead, or a second back", async () => {
    const now = await fixture.micros();
    for (const far of [1_100_000, 60_000_000, 5_000_000_000_000_000]) {
      for (const sign of [1, -1]) {
        const { header, answers } = await fixture.call([
          [fixture.lock(), acquireOf(requester(1)), now + sign * far],
        ]);
        const [micros] = header as [number];
        expect(answers[0]?.[1]).toBe(
          sign > 0 ? Math.min(now + far, micros + candidateMicros) : micros - candidateMicros,
        );
      }
    }
  });

  test("a proposal that is not above the last number does not count", async () => {
    const keys = fixture.lock();
    const candidate = (await fixture.micros()) + 500_000;
    await fixture.run(keys, acquireOf(requester(1), { fencingCount: 10 }), candidate);
    await fixture.run(keys, ["release", requester(1).token, ""]);
    const [, first] = await fixture.run(keys, acquireOf(requester(2)), candidate);
    expect(first).toBe(candidate + 10);
  });

  test("each operation has its own proposal", async () => {
    const now = await fixture.micros();
    const { answers } = await fixture.call(
      [5, 3, 4].map((offset) => [fixture.lock(), acquireOf(requester(1)), now + offset] as const),
    );
    expect(answers.map(([, first]) => Number(first) - now)).toEqual([5, 3, 4]);
  });

  test("a grant by notification has the number that its cause proposed, and the server's own time", async () => {
    await fixture.listen(2);
    const keys = fixture.lock();
    const waiter = requester(2, { fencingCount: 4 });
    await fixture.grant(keys, requester(1));
    await fixture.queue(keys, waiter);
    const candidate = (await fixture.micros()) + 700_000;
    const { header, answers } = await fixture.call([[keys, ["release", requester(1).token, ""], candidate]]);
    const [micros, runId] = header as [number, string];
    expect(answers).toEqual([[1, 0, expect.any(String)]]);
    expect(await fixture.received(2)).toEqual([
      `grant ${waiter.token} ${candidate} ${candidate + 3} ${micros} 3000 ${runId} ${keys[0]}`,
    ]);
  });
});
