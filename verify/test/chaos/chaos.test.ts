import { describe, expect, test } from "vitest";

import { engines } from "../../chaos/plan/engines.ts";
import { parseOptions } from "../../chaos/options.ts";
import { engineNames, type EngineName, type Plan } from "../../chaos/plan/plan.ts";
import { planOf } from "../../chaos/plan/planner.ts";
import { ChaosRuns } from "./chaos-runs.ts";

const chaos = new ChaosRuns();

describe("a plan", () => {
  test.each(engineNames)(
    "has every kind of fault of %s in the first minute, and is the same for the same seed",
    (name) => {
      for (let seed = 0; seed < 20; seed += 1) {
        const plan = planFor(name, seed);
        const kinds = new Set(plan.storms.flatMap(({ faults }) => faults.map(({ kind }) => kind)));
        expect([...kinds].sort()).toEqual([...engines[name].faults].sort());
        expect(planFor(name, seed)).toEqual(plan);
      }
    },
  );

  test("lets only a minority of a quorum lose data or have a wrong clock in one storm", () => {
    for (let seed = 0; seed < 50; seed += 1) {
      for (const { faults } of planFor("redlock", seed).storms) {
        const unreliable = faults.filter(({ kind }) => /empty|step a clock/.test(kind));
        expect(new Set(unreliable.flatMap(({ nodes }) => nodes)).size).toBeLessThanOrEqual(2);
      }
    }
  });
});

test("a long plan of a quorum has a target for each fault", () => {
  for (let seed = 0; seed < 20; seed += 1) {
    const plan = planOf(engines.redlock, { seed, minutes: 10, nodeCount: 5, without: null });
    const targets = plan.storms.flatMap(({ faults }) => faults.flatMap(({ nodes }) => nodes));
    expect(targets.filter((node) => plan.nodes[node] === undefined)).toEqual([]);
  }
});

describe("options", () => {
  test.each([
    [["--minutes", "0"], "Expected --minutes to be a number from 0.2 to 1440"],
    [
      ["--engine", "memcached"],
      `Expected --engine to be ${engineNames.join(", ")}, both or all, got "memcached"`,
    ],
    [["--nodes", "4"], "Expected --nodes to be 5 or 3"],
    [["--seed", "x"], "Expected --seed to be an integer"],
    [
      ["--engine", "redis", "--without", "guard"],
      "Expected --without to be durability, as the engine is redis",
    ],
  ])("%j are refused", (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });

  test("a run without a rule runs only the engine with that rule", () => {
    expect(parseOptions(["--without", "guard"]).engines).toEqual(["redlock"]);
  });

  test("the default engines are one server and Redlock, and `all` selects every engine", () => {
    expect(parseOptions([]).engines).toEqual(["redis", "redlock"]);
    expect(parseOptions(["--engine", "all"]).engines).toEqual(engineNames);
  });
});

// `npm run verify -- --only chaos` runs minutes on each engine.
test("20 s of chaos on one server violate nothing", async () => {
  const { code, output } = await chaos.run("--engine", "redis", "--minutes", "0.34", "--seed", "1");
  const { violations, figures } = await chaos.verdict("redis", output);
  expect(violations, output).toEqual([]);
  expect(code, output).toBe(0);
  expect(figures.grants).toBeGreaterThan(50);
  expect(figures.faults).toBeGreaterThan(0);
  expect(figures.lostWithTokens).toBe(0);
});

function planFor(name: EngineName, seed: number): Plan {
  const engine = engines[name];
  return planOf(engine, {
    seed,
    minutes: 1,
    nodeCount: engine.nodeCounts[0] as number,
    without: null,
  });
}
