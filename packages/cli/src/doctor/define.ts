import { type Command, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";

interface Flags extends CommonOptions {
  readonly ttl: number;
  readonly watchClocks: number;
  readonly probe: boolean;
  readonly acceptCounter?: true;
  readonly failOn: "critical" | "risk" | "perf" | "never";
  readonly json?: true;
}

/** Defines the command `doctor` and its flags. */
export function doctorCommand(program: Command): void {
  withCommon(program.command("doctor"))
    .summary("check a deployment for risks to locks")
    .description(
      "Checks the servers of a URL for risks to locks, and prints the reasons and the fixes. " +
        "For the URL of a service, it prints what the service finds on its engine; the token needs the scope admin. " +
        "Without --accept-counter doctor changes no setting. It acquires a lock on a key of its own, to test all needed commands.",
    )
    .addOption(
      timeOption("--ttl <time>", "the TTL of the locks, for the comparison with settings", duration, "30s"),
    )
    .addOption(
      timeOption(
        "--watch-clocks <time>",
        "how long the servers' clocks are watched; 0: no check",
        duration,
        "5s",
      ),
    )
    .option("--no-probe", "only look")
    .option("--accept-counter", "first accept fencing counters that are more than a day ahead of the time")
    .addOption(
      new Option("--fail-on <level>", "the lowest level with exit code 1; a critical finding has 2")
        .choices(["critical", "risk", "perf", "never"])
        .default("critical"),
    )
    .option("--json", "as JSON")
    .action(async (flags: Flags) => {
      const { doctor } = await import("./doctor.ts");
      process.exitCode = await doctor({
        target: flags,
        ttlMs: flags.ttl,
        watchMs: flags.watchClocks,
        probes: flags.probe,
        acceptsCounters: flags.acceptCounter === true,
        failOn: flags.failOn,
        json: flags.json === true,
        isQuiet: flags.quiet === true,
      });
    });
}
