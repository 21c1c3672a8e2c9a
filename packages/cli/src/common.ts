import type { Command } from "commander";

import type { Target } from "./engine.ts";
import type { OutputOptions } from "./output.ts";

/** The options of every command that uses an engine. */
export interface CommonOptions extends Target, OutputOptions {}

export function withCommon(command: Command): Command {
  return command
    .option(
      "-u, --url <url>",
      "the engine or the service; by default HOLDFAST_URL. Put passwords into the environment or a file instead",
    )
    .option(
      "--url-file <file>",
      "a file that contains the URL, instead of HOLDFAST_URL; by default HOLDFAST_URL_FILE",
    )
    .option("-q, --quiet", "print only the requested data")
    .option("-v, --verbose", "say more");
}
