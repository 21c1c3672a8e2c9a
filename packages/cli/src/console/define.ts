import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { wholeNumber } from "../numbers.ts";

interface Flags extends CommonOptions {
  readonly port: number;
  readonly open: boolean;
  readonly readOnly?: true;
}

/** Defines the command `console` and its flags. */
export function consoleCommand(program: Command): void {
  withCommon(program.command("console"))
    .summary("open the web console in a browser")
    .description(
      "Serves the web console on this machine alone, and opens it in a browser. For the URL of a service, opens the console of that service.",
    )
    .option("--port <n>", "0: any", wholeNumber(0, 65_535), 0)
    .option("--no-open", "only print the address")
    .option("--read-only", "refuse to break locks")
    .action(async (flags: Flags) => {
      const { openConsole } = await import("./console.ts");
      process.exitCode = await openConsole({
        target: flags,
        port: flags.port,
        opensBrowser: flags.open,
        isReadOnly: flags.readOnly === true,
      });
    });
}
