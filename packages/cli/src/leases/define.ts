import { type Command, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, durationOrForever, timeOption } from "../duration.ts";
import { defaultOwner, defaultUser } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { oneKey } from "../key-argument.ts";
import { fencingToken, wholeNumber } from "../numbers.ts";
import { output } from "../output.ts";
import type { LeaseFormat } from "./lease-file.ts";

interface AcquireFlags extends CommonOptions {
  readonly key?: string;
  readonly ttl: number;
  readonly wait: number;
  readonly heldExit: number;
  readonly output: LeaseFormat;
  readonly owner?: string;
  readonly reason?: string;
}

export function acquireCommand(program: Command): void {
  withCommon(program.command("acquire"))
    .summary("acquire a lock and print its lease, for scripts")
    .description(
      "Acquires a lock and prints the lease, a secret for holdfast renew and holdfast release. " +
        "The lease ends with its TTL, unless it is renewed.",
    )
    .argument("[key]", "the key to lock")
    .option("-k, --key <key>", "the key to lock, instead of the argument")
    .addOption(timeOption("--ttl <time>", "how long the lock is held without a renewal", duration, "30s"))
    .addOption(
      timeOption("--wait <time>", "how long to wait for the lock: 0, 5m, forever", durationOrForever, "10s"),
    )
    .option(
      "-E, --held-exit <code>",
      "exit code if the lock was not acquired",
      wholeNumber(0, 255),
      exitCodes.notAcquired,
    )
    .addOption(
      new Option("-o, --output <form>", "the form of the lease: plain, env (for eval), json")
        .choices(["plain", "env", "json"])
        .default("plain"),
    )
    .option("--owner <text>", "the owner, shown by inspect")
    .option("--reason <text>", "the reason, shown by inspect")
    .action(async (argument: string | undefined, flags: AcquireFlags) => {
      const key = oneKey("acquire", argument, flags.key);
      const { acquire } = await import("./acquire.ts");
      process.exitCode = await acquire({
        keys: [key],
        among: "one",
        ttlMs: flags.ttl,
        waitMs: flags.wait,
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
    .summary("extend a lease that acquire printed")
    .description(
      "Extends a lease that acquire printed. The lease is read from HOLDFAST_LEASE, or else from stdin.",
    )
    .option("--ttl <time>", "the new TTL, from now; by default the lease's own", duration)
    .option("--json", "print the extended lease, like acquire -o json")
    .action(async (flags: CommonOptions & { ttl?: number; json?: true }) => {
      const { renew } = await import("./renew.ts");
      const json = flags.json === true;
      process.exitCode = await renew({ target: flags, ttlMs: flags.ttl, json, voice: output(flags) });
    });
}

interface ReleaseFlags extends CommonOptions {
  readonly force?: string | true;
  readonly owner?: string;
  readonly fence?: bigint;
  readonly reason?: string;
  readonly yes?: true;
  readonly json?: true;
}

export function releaseCommand(program: Command): void {
  withCommon(program.command("release"))
    .summary("release a lease that acquire printed, or break a lock")
    .description(
      "Releases a lease that acquire printed. The lease is read from HOLDFAST_LEASE, or else from stdin. " +
        "With --force it breaks another holder's lock. That holder is notified, but may still work for a moment.",
    )
    .argument("[key]", "the key of the lease, or of the lock to break")
    .option("--force [key]", "break this lock; with --owner instead of a key: every lock of that owner")
    .option(
      "--owner <name>",
      "break every lock of this owner, for example of a dead pod: the whole name, as ls shows it; only with --force",
    )
    .option("--fence <token>", "only the grant with this fencing token", fencingToken)
    .option("--reason <text>", "the reason, sent to the holder; required with --force")
    .option("-y, --yes", "break without a question")
    .option("--json", "print the result of each break as JSON; only with --force")
    .action(async (key: string | undefined, flags: ReleaseFlags) => {
      if (flags.force === undefined && (flags.fence !== undefined || flags.reason !== undefined)) {
        throw new Exit(
          exitCodes.usage,
          "expected --force with --fence and --reason, which are for the break of a lock",
        );
      }
      if (flags.force === undefined && flags.owner === undefined) {
        if (flags.json === true) {
          throw new Exit(exitCodes.usage, "expected --json only with --force");
        }
        const { release } = await import("./release.ts");
        process.exitCode = await release({ target: flags, key, voice: output(flags) });
        return;
      }
      process.exitCode = await forcedRelease(key, flags);
    });
}

/** Breaks one lock, or every lock of one owner. */
async function forcedRelease(argument: string | undefined, flags: ReleaseFlags): Promise<number> {
  const { owner, fence, reason } = flags;
  if (argument !== undefined && typeof flags.force === "string") {
    throw new Exit(exitCodes.usage, `expected one key, got "${argument}" and --force ${flags.force}`);
  }
  const force = argument !== undefined && flags.force === true ? argument : flags.force;
  if (reason === undefined) {
    throw new Exit(exitCodes.usage, "expected --reason with --force, because the holder receives the reason");
  }
  const common = {
    target: flags,
    reason,
    isConfirmed: flags.yes === true,
    json: flags.json === true,
    voice: output(flags),
  };
  if (typeof force === "string" && owner === undefined) {
    const { breakLock } = await import("./break.ts");
    return breakLock({ ...common, key: force, fencingToken: fence });
  }
  if (force !== true || owner === undefined || fence !== undefined) {
    throw new Exit(
      exitCodes.usage,
      "expected --force with a key, or --force --owner NAME without a key and --fence",
    );
  }
  const { breakOwner } = await import("./break-owner.ts");
  return breakOwner({ ...common, owner });
}

interface HoldFlags extends CommonOptions {
  readonly key?: string;
  readonly for?: number;
  readonly wait: number;
  readonly reason?: string;
  readonly release?: true;
  readonly owner?: string;
  readonly json?: true;
}

export function holdCommand(program: Command): void {
  withCommon(program.command("hold"))
    .summary("hold a lock by hand, for example for a freeze")
    .description("Holds a lock without a process, until its time has passed, or until hold --release.")
    .argument("[key]", "the key to lock")
    .option("-k, --key <key>", "the key to lock, instead of the argument")
    .option("--for <time>", "how long the lock is held, up to 24h", duration)
    .option("--reason <text>", "the reason, shown by inspect")
    .addOption(
      timeOption("--wait <time>", "how long to wait for the lock: 0, 5m, forever", durationOrForever, "0"),
    )
    .option("--release", "release the lock before its time")
    .option("--owner <text>", "the owner (user@host)")
    .option("--json", "print the fencing token and the end as JSON")
    .action(async (argument: string | undefined, flags: HoldFlags) => {
      const key = oneKey("hold", argument, flags.key);
      const isRelease = flags.release === true;
      if (!isRelease && (flags.for === undefined || flags.reason === undefined)) {
        const missing = [
          ...(flags.for === undefined ? ["--for TIME"] : []),
          ...(flags.reason === undefined ? ["--reason TEXT"] : []),
        ].join(" and ");
        throw new Exit(exitCodes.usage, `expected ${missing} too, for a lock that is held by hand`);
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
