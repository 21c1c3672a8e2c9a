import { expect, test } from "vitest";

import { Limits } from "../../sim/judge/limits.ts";

test("a limit that is requested and replaced between two looks at the server may have been in force", () => {
  const limits = new Limits(2);
  const change = limits.requested(4);
  expect(limits.inForceSince(100)).toEqual([2, 4]);
  change.until = 150;
  limits.applied(150, 2);
  expect(limits.inForceSince(150)).toEqual([2, 4]);
  expect(limits.inForceSince(151)).toEqual([2]);
});

test("a limit whose change has no reply may be in force at any later time", () => {
  const limits = new Limits(2);
  limits.requested(4);
  expect(limits.inForceSince(10_000)).toEqual([2, 4]);
});
