import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";

interface Flags extends CommonOptions {
  readonly every: number;
  readonly once?: true;
  readonly analyze?: string;
}

/** Defines the command `top` and its flags. */
export function topCommand(program: Command): void {
  withCommon(program.command("top"))
    .summary("show holders and waiters, live")
    .description("Shows the holders and waiters of locks, live. ? lists the keys.")
    .argument("[prefix]", "only keys with this prefix", "")
    .addOption(timeOption("--every <time>", "the interval of requests to the engine", duration, "1s"))
    .option("--once", "print one frame")
    .option("--analyze <file>", "print one frame from the output of ls --json")
    .action(async (prefix: string, flags: Flags) => {
      const { top } = await import("./top.ts");
      process.exitCode = await top({
        target: flags,
        prefix,
        everyMs: flags.every,
        isOnce: flags.once === true,
        file: flags.analyze,
      });
    });
}
