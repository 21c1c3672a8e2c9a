import { cpuMetrics, cpuFigures } from "../measure/cpu-use.ts";
import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import { oldestLeaseMs, renewalAgeMs } from "../measure/lease-ages.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { sum } from "../measure/statistics.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";
import { measureWindow } from "../measure/window.ts";

const metrics: readonly Metric[] = [
  ...cpuMetrics,
  { id: "oldest", label: "oldest lease % of TTL", digits: 1 },
  { id: "late", label: "renewed late by max ms", digits: 0 },
  { id: "lost", label: "leases lost", digits: 0 },
];

export interface RenewalSize {
  readonly leases: number;
  /** Also how long the leases are acquired, how long they are watched, and how long their ages are looked at. */
  readonly ttlMs: number;
}

/** What it costs to keep many leases alive in one process, each library at its own rhythm. */
export function renewals(
  contestants: readonly ContestantName[],
  sizes: readonly RenewalSize[],
  rounds: number,
): Suite {
  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const size of sizes) {
      const { leases, ttlMs } = size;
      const keys = Array.from({ length: leases }, (_, index) => `lease:${leases}:${index}`);
      await using workerGroup = await WorkerGroup.open(contestant, site, 1);
      await workerGroup.start({ kind: "hold", keys, ttlMs });
      // No warm-up: filling has lasted one TTL, so the first leases have been renewed. One TTL is at least one round of all.
      const window = await measureWindow(workerGroup, site, { warmUpMs: 0, measureMs: ttlMs });
      // Afterwards, because to look costs commands.
      const [{ admin }] = site.servers;
      const oldestMs = await oldestLeaseMs(admin, { keys, ttlMs, watchedMs: ttlMs });
      yield figures(label(size), workerGroup, window, {
        ...cpuFigures(window),
        oldest: (oldestMs / ttlMs) * 100,
        late: oldestMs - renewalAgeMs(contestant, ttlMs),
        lost: sum(window.measurements.map(({ leasesLost }) => leasesLost)),
      });
    }
  }

  return {
    name: "renewals",
    title: "Held leases being renewed",
    method: "One process. Leases are acquired evenly over one TTL, then watched for one TTL.",
    contestants,
    absent: [{ contestants: ["@verrou/core"], reason: "has no renewal of its own" }],
    reference: "raw",
    topology: "server",
    rounds,
    cases: sizes.map(label),
    metrics,
    panels: [...cpuMetrics, { id: "oldest" }].map(({ id }) => ({ form: "bars", metric: id })),
    measure,
  };
}

function label({ leases, ttlMs }: RenewalSize): string {
  return `${leases.toLocaleString("en-US")} leases, TTL ${ttlMs / 1000} s`;
}
