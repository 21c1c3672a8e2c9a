import { expect, test } from "vitest";

import { track, FakeQuorum, refusedError } from "../../../support/fake-quorum.ts";

interface Case {
  readonly when: string;
  readonly afterMs: number;
  readonly down: readonly number[];
  readonly how: "refuse" | "freeze";
}

const cases: readonly Case[] = [
  { when: "before the first reply, with all nodes unresponsive", afterMs: 0, down: [0, 1, 2], how: "freeze" },
  { when: "during the handshakes", afterMs: 3, down: [], how: "refuse" },
  { when: "with an unresponsive majority", afterMs: 7, down: [1, 2], how: "freeze" },
  { when: "with one node down, while the votes arrive", afterMs: 5, down: [2], how: "refuse" },
  { when: "with a majority down", afterMs: 40, down: [1, 2], how: "refuse" },
  { when: "with one unresponsive node, after the grant", afterMs: 60, down: [2], how: "freeze" },
];

for (const { when, afterMs, down, how } of cases) {
  test(`closing ${when} settles everything, and leaves no timer, no lock and no open request`, async () => {
    const lab = new FakeQuorum(3);
    const process = lab.process();
    for (const index of down) {
      const faults = process.faults[index];
      if (how === "freeze") {
        faults?.freeze();
      } else {
        faults?.refuse(refusedError());
      }
    }
    const acquired = track(process.locks.acquire("k", { ttlMs: 10_000, waitMs: 20_000 }));
    const tried = track(process.locks.tryAcquire("other", { ttlMs: 10_000 }));
    await lab.clock.advance(afterMs);
    await lab.settleWithin(8_000, process.locks.close());
    expect([acquired.isSettled, tried.isSettled]).toEqual([true, true]);
    for (const index of down) {
      process.faults[index]?.refuse(null);
      process.faults[index]?.thaw();
    }
    const sent = process.sent();
    await lab.clock.advance(30_000);
    expect(process.sent() - sent).toBeLessThanOrEqual(6); // the residue is cleaned up
    expect(lab.clock.timers()).toBe(0);
    expect([...lab.holders("k"), ...lab.holders("other")]).toEqual(Array(6).fill(null));
  });
}
