import type { Command } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration } from "../duration.ts";
import { wholeNumber } from "../numbers.ts";
import { output } from "../output.ts";

interface Flags extends CommonOptions {
  readonly host?: string;
  readonly port?: number;
  readonly authFile?: string;
  readonly maxWait?: number;
  readonly drain?: number;
  readonly rate?: number;
  readonly groups?: readonly string[];
  readonly origins?: readonly string[];
  readonly console: boolean;
  readonly readOnly?: true;
  readonly check?: true;
  readonly newToken?: true;
}

const list = (text: string): string[] => text.split(",");

const furtherHelp = `
Without a flag, variables have the settings, as in a container:
  HOLDFAST_HOST  HOLDFAST_PORT  HOLDFAST_AUTH_FILE  HOLDFAST_RATE  HOLDFAST_GROUPS  HOLDFAST_ORIGINS
  HOLDFAST_MAX_WAIT_MS and HOLDFAST_DRAIN_MS, in milliseconds
  HOLDFAST_CONSOLE=off    HOLDFAST_READ_ONLY=on    HOLDFAST_LOG=debug, as --verbose
  HOLDFAST_LEASE_KEY, which signs lease ids, HOLDFAST_LEASE_KEY_OLD, whose ids are valid too
  HOLDFAST_MAX_WAITS  HOLDFAST_MAX_WAITS_OF_KEY  HOLDFAST_MAX_LEASES, the limits of one principal

An auth file with one token, whose client sets HOLDFAST_TOKEN:
  {"tokens": [{"name": "ci", "sha256": "<64 hex digits, of --new-token>", "grants": [
    {"scope": "lock:acquire", "prefix": "order:"}, {"scope": "lock:read", "prefix": "order:"}]}]}
Scopes, none of which includes another:
  lock:acquire  run, once, acquire, renew, release, hold
  lock:read     ls, inspect, wait, watch, top, owners, audit
  lock:force    release --force --fence; with lock:read also release --force and hold --release
  admin         doctor, the metrics, and audit of all keys; without a prefix
docs/service.md lists the requests of each scope, and issuers of signed tokens.`;

/** Defines the command `serve` and its flags. */
export function serveCommand(program: Command): void {
  withCommon(program.command("serve"))
    .summary("run the lock service")
    .description(
      "Runs the lock service on an engine. Without a URL the engine is inside the process, for this service alone, on this machine alone.",
    )
    .option(
      "--host <address>",
      "the address to listen on, by default 127.0.0.1; without --auth-file only addresses of this machine",
    )
    .option("--port <n>", "by default 7420; 0: any", wholeNumber(0, 65_535))
    .option(
      "--auth-file <file>",
      "tokens and issuers as JSON, as below; read again at each change, and on SIGHUP",
    )
    .option("--max-wait <time>", "the longest wait for one response, by default 60s", duration)
    .option("--drain <time>", "how long to wait for open requests at the end, by default 10s", duration)
    .option(
      "--rate <n>",
      "the limit of requests per second and principal; no limit by default",
      wholeNumber(1),
    )
    .option("--groups <prefixes>", "key prefixes that are groups of the metrics, separated by commas", list)
    .option("--origins <origins>", "origins of web pages that may use the service, separated by commas", list)
    .option("--no-console", "without the web console")
    .option("--read-only", "refuse every change of a lock")
    .option("--check", "only validate the settings")
    .option("--new-token", "only print a new token, its hash, and an example entry of the auth file")
    .addHelpText("after", furtherHelp)
    .action(async (flags: Flags) => {
      const { printNewToken, serve } = await import("./serve.ts");
      if (flags.newToken === true) {
        await printNewToken(output(flags));
        return;
      }
      process.exitCode = await serve({
        target: flags,
        host: flags.host,
        port: flags.port,
        authFile: flags.authFile,
        settings: {
          maxWaitMs: flags.maxWait,
          drainMs: flags.drain,
          requestsPerSecond: flags.rate,
          groups: flags.groups,
          allowedOrigins: flags.origins,
          console: flags.console ? undefined : false,
          readOnly: flags.readOnly,
        },
        onlyChecks: flags.check === true,
        logsAll: flags.verbose === true,
      });
    });
}
