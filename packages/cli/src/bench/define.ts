import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";
import { wholeNumber } from "../numbers.ts";

interface Flags extends CommonOptions {
  readonly workers: number;
  readonly keys: number;
  readonly hold: number;
  readonly ttl: number;
  readonly for: number;
  readonly json?: true;
}

/** Defines the command `bench` and its flags. */
export function benchCommand(program: Command): void {
  withCommon(program.command("bench"))
    .summary("measure an engine from this machine")
    .description(
      "Lets workers of this process acquire and release locks as fast as possible, and prints the rates and waits.",
    )
    .option("--workers <n>", "the number of concurrent workers", wholeNumber(1, 10_000), 16)
    .option(
      "--keys <n>",
      "the number of locks; 1: all workers want the same lock",
      wholeNumber(1, 1_000_000),
      16,
    )
    .addOption(timeOption("--hold <time>", "how long each lock is held", duration, "0"))
    .addOption(timeOption("--ttl <time>", "the TTL of the locks", duration, "10s"))
    .addOption(timeOption("--for <time>", "how long it runs", duration, "5s"))
    .option("--json", "as JSON")
    .action(async (flags: Flags) => {
      const { bench } = await import("./bench.ts");
      process.exitCode = await bench({
        target: flags,
        workers: flags.workers,
        keys: flags.keys,
        holdMs: flags.hold,
        ttlMs: flags.ttl,
        forMs: flags.for,
        json: flags.json === true,
      });
    });
}
