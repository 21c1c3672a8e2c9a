import { type Command, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { durationOrForever, timeOption } from "../duration.ts";
import { Exit, exitCodes } from "../exit.ts";
import { wholeNumber } from "../numbers.ts";
import { output } from "../output.ts";
import type { SortOrder } from "./list.ts";

interface ListFlags extends CommonOptions {
  readonly waiting?: true;
  readonly stale?: true;
  readonly owner?: string;
  readonly sort: SortOrder;
  readonly json?: true;
}

export function listCommand(program: Command): void {
  withCommon(program.command("ls"))
    .summary("list held locks")
    .description("Lists the held locks.")
    .argument("[prefix]", "only keys with this prefix", "")
    .option("--waiting", "only locks with waiters")
    .option("--stale", "only locks without a release in sight: of an unknown holder, or without an expiry")
    .option(
      "--owner <text>",
      "only locks of holders whose name contains this text; release --owner needs the whole name",
    )
    .addOption(
      new Option("--sort <by>", "key, age (longest held first), left (time until the end), waiting or owner")
        .choices(["key", "age", "left", "waiting", "owner"])
        .default("key"),
    )
    .option("--json", "as JSON")
    .action(async (prefix: string, flags: ListFlags) => {
      const { list } = await import("./list.ts");
      process.exitCode = await list({
        target: flags,
        prefix,
        onlyContended: flags.waiting === true,
        onlyStale: flags.stale === true,
        owner: flags.owner,
        sort: flags.sort,
        json: flags.json === true,
      });
    });
}

export function inspectCommand(program: Command): void {
  withCommon(program.command("inspect"))
    .summary("show the holders and waiters of a lock")
    .description("Shows the holders of a lock with reason and fencing token, and its waiters in order.")
    .argument("<key>", "which lock")
    .option("--json", "as JSON")
    .action(async (key: string, flags: CommonOptions & { json?: true }) => {
      const { inspect } = await import("./inspect.ts");
      process.exitCode = await inspect({ target: flags, key, json: flags.json === true });
    });
}

export function auditCommand(program: Command): void {
  withCommon(program.command("audit"))
    .summary("list the last breaks of locks")
    .description(
      "Lists the last breaks, newest first, as the engine recorded them. The engine keeps 1 000 records.",
    )
    .argument("[key]", "only breaks of this lock")
    .option("--id <id>", "only the record with this id, as release --force --json names it")
    .option("-n, --limit <count>", "at most this many records", wholeNumber(1, 1000), 50)
    .option("--json", "as JSON")
    .action(
      async (key: string | undefined, flags: CommonOptions & { id?: string; limit: number; json?: true }) => {
        const { audit } = await import("./audit.ts");
        const { id, limit } = flags;
        process.exitCode = await audit({ target: flags, key, id, limit, json: flags.json === true });
      },
    );
}

export function waitCommand(program: Command): void {
  withCommon(program.command("wait"))
    .summary("wait until a lock is free, without acquiring it")
    .description(
      "Waits until a lock is free, without acquiring it. Another client may acquire the lock at any moment after.",
    )
    .argument("<key>", "which lock")
    .addOption(timeOption("--wait <time>", "the longest wait: 0, 5m, forever", durationOrForever, "forever"))
    .option(
      "-E, --held-exit <code>",
      "exit code if the lock is still held",
      wholeNumber(0, 255),
      exitCodes.notAcquired,
    )
    .action(async (key: string, flags: CommonOptions & { wait: number; heldExit: number }) => {
      const { wait } = await import("./wait.ts");
      const { wait: waitMs, heldExit } = flags;
      process.exitCode = await wait({ target: flags, key, waitMs, heldExit, voice: output(flags) });
    });
}

export function watchCommand(program: Command): void {
  withCommon(program.command("watch"))
    .summary("print changes of locks, about twice a second")
    .description(
      "Prints the held locks, and then their changes, one line each, until it is interrupted. " +
        "It polls about twice a second and reports the newest state only, so a lock that is held for a shorter time may be missed.",
    )
    .argument("[prefix]", "only keys with this prefix")
    .option("-k, --key <key>", "only this key")
    .option("--json", "print each line as JSON")
    .action(async (prefix: string | undefined, flags: CommonOptions & { key?: string; json?: true }) => {
      if (prefix !== undefined && flags.key !== undefined) {
        throw new Exit(exitCodes.usage, "expected either a prefix or --key, got both");
      }
      const { watch } = await import("./watch.ts");
      const watched = flags.key ?? { prefix: prefix ?? "" };
      process.exitCode = await watch({ target: flags, watched, json: flags.json === true });
    });
}
