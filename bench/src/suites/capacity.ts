import { checks, type CapacitySize } from "../capacity/checks.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";

export type { CapacitySize } from "../capacity/checks.ts";

const metrics: readonly Metric[] = [
  { id: "formula", label: "by the formula", digits: 1 },
  { id: "measured", label: "measured", digits: 1 },
  { id: "ratio", label: "measured / formula", digits: 2 },
];

/** Whether the formulae for the size of a deployment match the measurements. */
export function capacity(contestants: readonly ContestantName[], size: CapacitySize, rounds: number): Suite {
  async function* measure(_: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    const [{ admin }] = site.servers;
    for (const { label, run } of checks) {
      await admin.flushall();
      const { formula, measured } = await run(site, size);
      const values = { formula, measured, ratio: measured / formula };
      yield { case: label, settings: "redis(client), defaults", values, failures: 0, firstFailure: null };
    }
  }

  return {
    name: "capacity",
    title: "The formulae of docs/capacity.md",
    method: `${size.count.toLocaleString("en-US")} leases, waiters and keys.`,
    contestants,
    absent: [],
    reference: null,
    topology: "server",
    rounds,
    cases: checks.map(({ label }) => label),
    metrics,
    panels: [{ form: "bars", metric: "ratio" }],
    measure,
  };
}
