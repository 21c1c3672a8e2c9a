import { configurations, type Configuration } from "./configurations.ts";
import { explore, type Exploration } from "./explorer/explore.ts";
import { mutants, type Mutant } from "./mutants.ts";
import { optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { describeExploration, describeMutant, describeProgress, describeSchedule } from "./report.ts";

const options = optionsOrExit("verify:model", usage, parseOptions);
process.exitCode = options.mutants ? exploreMutants(options) : exploreAll(options);

function exploreAll({ long, only }: ResolvedOptions): number {
  const selected = configurations.filter(({ name, isLong }) => only?.has(name) ?? (long || !isLong));
  const broken = selected.filter((configuration) => {
    const exploration = run(configuration);
    console.log(describeExploration(configuration, exploration));
    return exploration.violation !== undefined;
  });
  const failures = `in ${broken.length} of ${selected.length} explorations an invariant is violated`;
  console.log(
    broken.length > 0 ? `\n${failures}` : `\nNo invariant is violated in ${selected.length} explorations.`,
  );
  return broken.length > 0 ? 1 : 0;
}

function exploreMutants({ only, schedules }: ResolvedOptions): number {
  const selected = mutants.filter(({ name }) => only?.has(name) ?? true);
  const survivors = selected.filter((mutant) => !isCaught(mutant, schedules));
  console.log(`\n${selected.length - survivors.length} of ${selected.length} mutants are detected.`);
  return survivors.length > 0 ? 1 : 0;
}

function isCaught(mutant: Mutant, schedules: boolean): boolean {
  const exploration = run(mutant.configuration);
  const { violation } = exploration;
  const caught = violation?.invariant.startsWith(mutant.violatedInvariant) === true;
  console.log(describeMutant(mutant, exploration, caught));
  if (schedules && violation) {
    console.log(describeSchedule(violation));
  }
  return caught;
}

function run({ name, limits, model }: Configuration): Exploration {
  return explore(model(), limits, (progress) => {
    console.error(describeProgress(name, progress));
  });
}
