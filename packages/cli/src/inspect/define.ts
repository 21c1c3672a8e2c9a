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
    .summary("list the locks that are held")
    .description("Lists the locks that are held now.")
    .argument("[prefix]", "only keys that begin so", "")
    .option("--waiting", "only those that somebody waits for")
    .option("--stale", "only those that nobody will free: of an unknown holder, or without an end")
    .option("--owner <text>", "only those of a holder whose name contains this")
    .addOption(
      new Option("--sort <by>", "key, left (time until the end), waiting or owner")
        .choices(["key", "left", "waiting", "owner"])
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
    .summary("tell who holds a lock, and who waits")
    .description("Tells who holds a lock, why, with which fencing token, and who waits, in order.")
    .argument("<key>", "which lock")
    .option("--json", "as JSON")
    .action(async (key: string, flags: CommonOptions & { json?: true }) => {
      const { inspect } = await import("./inspect.ts");
      process.exitCode = await inspect({ target: flags, key, json: flags.json === true });
    });
}

export function waitCommand(program: Command): void {
  withCommon(program.command("wait"))
    .summary("wait until a lock is free, without taking it")
    .description("Waits until nobody holds a lock, without taking it: a moment later it may be held again.")
    .argument("<key>", "which lock")
    .addOption(timeOption("--wait <time>", "how long: 0, 5m, forever", durationOrForever, "forever"))
    .option(
      "-E, --held-exit <code>",
      "exit code where it is still held",
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
    .summary("tell every change, as it happens")
    .description("Tells what is held now, and every change from then on, a line each, until it is ended.")
    .argument("[prefix]", "only keys that begin so")
    .option("-k, --key <key>", "only this key")
    .option("--json", "as a line of JSON each")
    .action(async (prefix: string | undefined, flags: CommonOptions & { key?: string; json?: true }) => {
      if (prefix !== undefined && flags.key !== undefined) {
        throw new Exit(exitCodes.usage, "either a prefix or a --key is watched");
      }
      const { watch } = await import("./watch.ts");
      const watched = flags.key ?? { prefix: prefix ?? "" };
      process.exitCode = await watch({ target: flags, watched, json: flags.json === true });
    });
}
