import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";

/** Defines the command `owners` and its flags. */
export function ownersCommand(program: Command): void {
  withCommon(program.command("owners"))
    .summary("list the processes that use the locks")
    .description(
      "Asks the processes with this library on the same engine for their leases and waits. " +
        "A process that does not answer may be frozen, or may have ended.",
    )
    .option("-k, --key <key>", "only processes that hold this key or wait for it")
    .option("--json", "as JSON")
    .action(async (flags: CommonOptions & { key?: string; json?: true }) => {
      const { owners } = await import("./owners.ts");
      process.exitCode = await owners({ target: flags, key: flags.key, json: flags.json === true });
    });
}
