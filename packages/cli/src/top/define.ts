import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";

interface Flags extends CommonOptions {
  readonly every: number;
  readonly once?: true;
  readonly analyze?: string;
}

/** Says what `top` is told by its flags. */
export function topCommand(program: Command): void {
  withCommon(program.command("top"))
    .summary("see who holds what, live")
    .description("Shows who holds what and who waits, live. ? lists the keys.")
    .argument("[prefix]", "only keys that begin so", "")
    .addOption(timeOption("--every <time>", "how often the engine is asked", duration, "1s"))
    .option("--once", "print one frame")
    .option("--analyze <file>", "print one frame of what ls --json wrote")
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
