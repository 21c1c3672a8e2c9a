import type { Holder } from "holdfast";
import { expect, test } from "vitest";

import { PresentHold } from "../src/observation/present-hold.ts";

const since = 1_000_000;
const ttlMs = 1_500;

/** The holder `heldMs` after its grant, by the engine's clock, without a renewal. */
function holderAfter(heldMs: number): Holder {
  return { owner: "pod", fencingToken: 7n, since, heldMs, remainingMs: ttlMs - heldMs } as Holder;
}

test("a hold whose last state arrived late has expired, and was not released before its expiry", () => {
  const hold = new PresentHold("k", holderAfter(10), since + 12);
  hold.read(holderAfter(900), since + 902);
  hold.read(holderAfter(1_200), since + 1_350);
  expect(hold.ended(false, since + 1_510)).toMatchObject({ end: "expired" });
});

test("a hold that ends before its expiry was released, also by a machine whose clock is ahead", () => {
  const aheadMs = 60_000;
  const hold = new PresentHold("k", holderAfter(10), since + aheadMs + 12);
  hold.read(holderAfter(900), since + aheadMs + 905);
  expect(hold.ended(false, since + aheadMs + 1_400)).toMatchObject({ end: "released" });
});
