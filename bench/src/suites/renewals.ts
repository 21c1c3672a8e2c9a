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
  /** The TTL of the leases. The acquisitions, the measurement, and the sampling of ages last one TTL each. */
  readonly ttlMs: number;
}

/** The cost of renewing many leases in one process, with the renewal interval of each library. */
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
      // No warm-up is necessary, because the acquisitions took one TTL, and the first leases have already been renewed. Each lease
      // is renewed at least once within the window of one TTL.
      const window = await measureWindow(workerGroup, site, { warmUpMs: 0, measureMs: ttlMs });
      // The ages are sampled after the window, because the sampling sends commands.
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
