import { type Command, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, durationOrForever, timeOption } from "../duration.ts";
import { defaultOwner, defaultUser } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { fencingToken, wholeNumber } from "../numbers.ts";
import { output } from "../output.ts";
import type { LeaseFormat } from "./lease-file.ts";

interface AcquireFlags extends CommonOptions {
  readonly key: string;
  readonly ttl: number;
  readonly wait: number;
  readonly heldExit: number;
  readonly output: LeaseFormat;
  readonly owner?: string;
  readonly reason?: string;
}

export function acquireCommand(program: Command): void {
  withCommon(program.command("acquire"))
    .summary("take a lock and write its lease down, for scripts")
    .description(
      "Takes a lock and writes the lease down: a secret, for holdfast renew and holdfast release. " +
        "Nobody renews it meanwhile: it ends with its TTL.",
    )
    .requiredOption("-k, --key <key>", "what is locked")
    .addOption(timeOption("--ttl <time>", "how long it is ours without renewal", duration, "30s"))
    .addOption(
      timeOption("--wait <time>", "how long to wait for the lock: 0, 5m, forever", durationOrForever, "10s"),
    )
    .option(
      "-E, --held-exit <code>",
      "exit code where the lock is not had",
      wholeNumber(0, 255),
      exitCodes.notAcquired,
    )
    .addOption(
      new Option("-o, --output <form>", "how the lease is written: plain, env (for eval), json")
        .choices(["plain", "env", "json"])
        .default("plain"),
    )
    .option("--owner <text>", "who we are, for those who look")
    .option("--reason <text>", "why, for those who look")
    .action(async (flags: AcquireFlags) => {
      const { acquire } = await import("./acquire.ts");
      process.exitCode = await acquire({
        keys: [flags.key],
        among: "one",
        ttlMs: flags.ttl,
        waitMs: flags.wait,
        maxHoldMs: Infinity,
        owner: flags.owner ?? defaultOwner(),
        reason: flags.reason,
        heldExit: flags.heldExit,
        format: flags.output,
        target: flags,
        voice: output(flags),
      });
    });
}

export function renewCommand(program: Command): void {
  withCommon(program.command("renew"))
    .summary("prolong a lease that acquire wrote")
    .description("Prolongs a lease that acquire wrote; it is read from HOLDFAST_LEASE, else from stdin.")
    .option("--ttl <time>", "from now on; by default that of the lease", duration)
    .option("--json", "tell what it is now, as acquire -o json does")
    .action(async (flags: CommonOptions & { ttl?: number; json?: true }) => {
      const { renew } = await import("./renew.ts");
      const json = flags.json === true;
      process.exitCode = await renew({ target: flags, ttlMs: flags.ttl, json, voice: output(flags) });
    });
}

interface ReleaseFlags extends CommonOptions {
  readonly force?: string;
  readonly fence?: bigint;
  readonly reason?: string;
  readonly yes?: true;
}

export function releaseCommand(program: Command): void {
  withCommon(program.command("release"))
    .summary("give a lease back that acquire wrote; or break a lock, by force")
    .description(
      "Gives a lease back that acquire wrote; it is read from HOLDFAST_LEASE, else from stdin. " +
        "With --force it breaks another's lock: its holder is told, but may be at work for another moment.",
    )
    .option("--force <key>", "break this lock")
    .option("--fence <token>", "only the grant with this fencing token", fencingToken)
    .option("--reason <text>", "why, told to the holder; needed with --force")
    .option("-y, --yes", "do not ask: whoever holds it now")
    .action(async (flags: ReleaseFlags) => {
      if (flags.force === undefined) {
        const { release } = await import("./release.ts");
        process.exitCode = await release({ target: flags, voice: output(flags) });
        return;
      }
      if (flags.reason === undefined) {
        throw new Exit(exitCodes.usage, "--force needs a --reason: the holder is told");
      }
      const { breakLock } = await import("./break.ts");
      process.exitCode = await breakLock({
        target: flags,
        key: flags.force,
        fencingToken: flags.fence,
        reason: flags.reason,
        isConfirmed: flags.yes === true,
        voice: output(flags),
      });
    });
}

interface HoldFlags extends CommonOptions {
  readonly for?: number;
  readonly wait: number;
  readonly reason?: string;
  readonly release?: true;
  readonly owner?: string;
  readonly json?: true;
}

export function holdCommand(program: Command): void {
  withCommon(program.command("hold"))
    .summary("hold a lock by hand, as for a freeze")
    .description("Holds a lock by hand, without a process: it ends with its time, or by hold --release.")
    .argument("<key>", "what is locked")
    .option("--for <time>", "how long, up to 24h", duration)
    .option("--reason <text>", "why, for those who look")
    .addOption(
      timeOption("--wait <time>", "how long to wait for the lock: 0, 5m, forever", durationOrForever, "0"),
    )
    .option("--release", "let it go before its time")
    .option("--owner <text>", "who we are (user@host)")
    .option("--json", "tell the fencing token and the end as JSON")
    .action(async (key: string, flags: HoldFlags) => {
      const isRelease = flags.release === true;
      if (!isRelease && (flags.for === undefined || flags.reason === undefined)) {
        throw new Exit(exitCodes.usage, "a lock that is held by hand needs --for and --reason");
      }
      const { hold, releaseHold } = await import("./hold.ts");
      process.exitCode = await (isRelease ? releaseHold : hold)({
        target: flags,
        key,
        owner: flags.owner ?? defaultUser(),
        forMs: flags.for ?? 0,
        waitMs: flags.wait,
        reason: flags.reason ?? "",
        json: flags.json === true,
        voice: output(flags),
      });
    });
}
