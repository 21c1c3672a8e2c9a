import { expect, test } from "vitest";

import { configurations, extension, queue } from "../../model/configurations.ts";
import { explore } from "../../model/explorer/explore.ts";
import { parseOptions } from "../../model/options.ts";

/** The explorations of `npm run verify:model` that take about a second. */
const smallConfigurations = [
  "turns",
  "turns-equal-tickets",
  "turns-minority-down",
  "fencing-restart",
  "clocks",
  "clocks-evicted",
];

test.each(smallConfigurations)("no state of %s violates an invariant", (name) => {
  const configuration = configurations.find((one) => one.name === name);
  const exploration = configuration && explore(configuration.model(), configuration.limits);
  expect(exploration?.violation).toBeUndefined();
  expect(exploration?.isExhaustive).toBe(true);
  expect(exploration?.states).toBeGreaterThan(1_000);
});

test("a counterexample lists its steps with consistent node names", () => {
  const { model, limits } = queue("three", "", { mutant: "yield-after-election" });
  const steps = explore(model(), limits).violation?.schedule.steps ?? [];
  const descriptions = steps.map((step) => step.description);
  expect(descriptions[0]).toMatch(/^[AB] requests the lock from all nodes$/);
  expect(descriptions.some((line) => /^node \d executes yield of B of number \d$/.test(line))).toBe(true);
  expect(steps.at(-1)?.state).toMatch(/A holding.*B holding/);
});

test("without an assumption about time, a lease may continue although another was granted before a late vote joined", () => {
  const { model, limits } = extension("strict", "", { datesFrom: "confirmation" });
  const { violation } = explore(model(), limits);
  expect(violation?.invariant).toMatch(/^extension: /);
  const descriptions = violation?.schedule.steps.map((step) => step.description) ?? [];
  expect(descriptions).toContain("node 1 drops the grant of A"); // excluded by Redlock's assumption
});

test("nodes are interchangeable: the order of the nodes affects no schedule", () => {
  const { model, limits } = queue("merged", "", {});
  const merged = explore(model(), limits);
  const apart = model();
  const unmerged = explore(
    {
      size: apart.size,
      columns: { ...apart.columns, count: 1 },
      initial: () => apart.initial(),
      expand: (source, take) => {
        apart.expand(source, take);
      },
      violation: (state) => apart.violation(state),
      isWaiting: apart.isWaiting,
      describeStep: (step) => apart.describeStep(step),
      describe: (state) => apart.describe(state),
    },
    limits,
  );
  expect(unmerged.violation).toBeUndefined();
  expect(unmerged.depth).toBe(merged.depth);
  expect(unmerged.states).toBeGreaterThan(merged.states * 4);
  expect(unmerged.states).toBeLessThanOrEqual(merged.states * 6);
});

test("an unknown name is refused with the list of known names", () => {
  expect(() => parseOptions(["--only", "nonsense"])).toThrow(
    /Expected --only to be some of turns, .*got "nonsense"/,
  );
});
