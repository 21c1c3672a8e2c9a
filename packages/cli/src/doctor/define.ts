import { type Command, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";

interface Flags extends CommonOptions {
  readonly ttl: number;
  readonly watchClocks: number;
  readonly probe: boolean;
  readonly failOn: "critical" | "risk" | "perf" | "never";
  readonly json?: true;
}

/** Says what `doctor` is told by its flags. */
export function doctorCommand(program: Command): void {
  withCommon(program.command("doctor"))
    .summary("find what endangers locks in a deployment")
    .description(
      "Looks at the servers behind a URL for what endangers locks, and tells why and what to do. " +
        "It changes no setting; it takes a lock on a key of its own, to prove that all that is needed works.",
    )
    .addOption(
      timeOption(
        "--ttl <time>",
        "the TTL that the locks have: settings are compared with it",
        duration,
        "30s",
      ),
    )
    .addOption(
      timeOption("--watch-clocks <time>", "how long the servers' clocks are watched; 0: not", duration, "5s"),
    )
    .option("--no-probe", "only look")
    .addOption(
      new Option("--fail-on <level>", "from which level on the exit code is 1, or 2 for a critical finding")
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
        failOn: flags.failOn,
        json: flags.json === true,
      });
    });
}
