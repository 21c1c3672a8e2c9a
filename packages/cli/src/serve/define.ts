import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, timeOption } from "../duration.ts";
import { wholeNumber } from "../numbers.ts";

interface Flags extends CommonOptions {
  readonly host: string;
  readonly port: number;
  readonly authFile?: string;
  readonly maxWait: number;
  readonly drain: number;
  readonly rate?: number;
  readonly groups?: readonly string[];
  readonly check?: true;
}

/** Says what `serve` is told by its flags. */
export function serveCommand(program: Command): void {
  withCommon(program.command("serve"))
    .summary("run the lock service")
    .description("Runs the lock service on an engine; without a URL on one inside of it, for itself alone.")
    .option("--host <address>", "where to listen; without --auth-file only on this machine", "127.0.0.1")
    .option("--port <n>", "0: any", wholeNumber(0, 65_535), 7_420)
    .option("--auth-file <file>", "who may come in: JSON, see docs/service.md")
    .addOption(timeOption("--max-wait <time>", "the longest that an answer is held back", duration, "60s"))
    .addOption(timeOption("--drain <time>", "how long to wait at the end for what is open", duration, "10s"))
    .option("--rate <n>", "requests of one principal in a second; no bound by default", wholeNumber(1))
    .option("--groups <prefixes>", "prefixes of keys that metrics tell apart, with commas", (text) =>
      text.split(","),
    )
    .option("--check", "only look whether the settings are understood")
    .action(async (flags: Flags) => {
      const { serve } = await import("./serve.ts");
      process.exitCode = await serve({
        target: flags,
        host: flags.host,
        port: flags.port,
        authFile: flags.authFile,
        maxWaitMs: flags.maxWait,
        drainMs: flags.drain,
        requestsPerSecond: flags.rate,
        groups: flags.groups,
        onlyChecks: flags.check === true,
        logsAll: flags.verbose === true,
      });
    });
}
