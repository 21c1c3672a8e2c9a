import type { Finding } from "../judge/findings.ts";
import { isFault, type Schedule } from "../plan/schedule.ts";
import type { RunReport } from "../run/world.ts";

/** The figures of all schedules that were run. */
export interface Tally {
  runs: number;
  grants: number;
  /** How many calls callers made: to acquire, extend, release, break, adopt. */
  operations: number;
  /** How many scripts and commands clients sent to servers. */
  commands: number;
  /** How many schedules were run of each kind, and of each engine and scenario. */
  kinds: Record<string, number>;
  scenarios: Record<string, number>;
  faults: Record<string, number>;
  /** In how many schedules a check was not applied, by reason. */
  excuses: Record<string, number>;
}

/** A schedule with findings. */
export interface Failure {
  readonly seed: number;
  readonly findings: readonly Finding[];
}

export function emptyTally(): Tally {
  return {
    runs: 0,
    grants: 0,
    operations: 0,
    commands: 0,
    kinds: {},
    scenarios: {},
    faults: {},
    excuses: {},
  };
}

export function count(tally: Tally, schedule: Schedule, report: RunReport): void {
  tally.runs += 1;
  tally.grants += report.grants;
  tally.operations += report.operations;
  tally.commands += report.commands;
  addAmounts(tally.kinds, schedule.kind, 1);
  addAmounts(tally.scenarios, `${schedule.engine}, ${schedule.scenario}`, 1);
  for (const reason of report.excuses) {
    addAmounts(tally.excuses, reason, 1);
  }
  for (const step of schedule.steps) {
    if (isFault(step)) {
      addAmounts(tally.faults, step.kind, 1);
    }
  }
}

export function add(tally: Tally, other: Tally): void {
  tally.runs += other.runs;
  tally.grants += other.grants;
  tally.operations += other.operations;
  tally.commands += other.commands;
  for (const field of ["kinds", "scenarios", "faults", "excuses"] as const) {
    for (const [name, amount] of Object.entries(other[field])) {
      addAmounts(tally[field], name, amount);
    }
  }
}

function addAmounts(amounts: Record<string, number>, name: string, added: number): void {
  amounts[name] = (amounts[name] ?? 0) + added;
}
