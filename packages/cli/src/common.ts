import type { Command } from "commander";

import type { Target } from "./engine.ts";
import type { OutputOptions } from "./output.ts";

/** What every command that asks an engine is told. */
export interface CommonOptions extends Target, OutputOptions {}

export function withCommon(command: Command): Command {
  return command
    .option(
      "-u, --url <url>",
      "the engine or the service; by default HOLDFAST_URL. A password does not belong here",
    )
    .option("--url-file <file>", "a file that contains the URL; by default HOLDFAST_URL_FILE")
    .option("-q, --quiet", "say nothing but what was asked for")
    .option("-v, --verbose", "say more");
}
