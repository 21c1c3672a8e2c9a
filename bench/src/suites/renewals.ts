import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import type { Entrant } from "../roster.ts";
import { clientCpuMs, sum } from "../statistics.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { watch, type Window } from "../window.ts";

const metrics: readonly Metric[] = [
  { id: "clientCpu", label: "client CPU %", digits: 1, best: "least" },
  { id: "serverCpu", label: "server CPU %", digits: 1 },
  { id: "commands", label: "commands/s", digits: 0, best: "least" },
  { id: "lost", label: "leases lost", digits: 0 },
];

export interface RenewalSize {
  readonly leases: number;
  /** Also how long the leases are acquired, and how long they are then watched. */
  readonly ttlMs: number;
}

/** What it costs to keep many leases alive in one process, each library at its own rhythm. */
export function renewals(
  entrants: readonly Entrant[],
  { leases, ttlMs }: RenewalSize,
  rounds: number,
): Suite {
  const keys = Array.from({ length: leases }, (_, index) => `lease:${index}`);
  const label = `${leases.toLocaleString("en-US")} leases, TTL ${ttlMs / 1000} s`;

  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    await using crew = await Crew.open(entrant, site, 1);
    await crew.start({ kind: "hold", keys, ttlMs });
    // No warm-up: filling has lasted one TTL, so the first leases have been renewed. One TTL is at least one round of all.
    const window = await watch(crew, site, { warmUpMs: 0, measureMs: ttlMs });
    yield figures(label, crew, window, valuesOf(window));
  }

  return {
    name: "renewals",
    title: "Held leases being renewed",
    method: "One process. Leases are acquired evenly over one TTL, then watched for one TTL.",
    entrants,
    reference: "raw",
    ground: "server",
    rounds,
    cases: [label],
    metrics,
    measure,
  };
}

function valuesOf({ measurements, serverCommands, serverCpuMs, elapsedMs }: Window): Record<string, number> {
  return {
    clientCpu: (clientCpuMs(measurements) / elapsedMs) * 100,
    serverCpu: (serverCpuMs / elapsedMs) * 100,
    commands: (serverCommands / elapsedMs) * 1000,
    lost: sum(measurements.map(({ leasesLost }) => leasesLost)),
  };
}
