import { type Command, InvalidArgumentError, Option } from "commander";

import { withCommon, type CommonOptions } from "../common.ts";
import { duration, durationOrForever, formatDuration, timeOption } from "../duration.ts";
import { defaultOwner } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { keyAndCommand, type KeyAndCommand } from "../key-argument.ts";
import { wholeNumber } from "../numbers.ts";
import { output } from "../output.ts";
import { onceLabels, minPeriodMs } from "./period.ts";
import type { RunOptions } from "./run.ts";
import type { OnLost } from "./supervise.ts";

/** The shortest maximum hold time, ms. */
const minMaxHoldMs = 100;

interface CommandFlags extends CommonOptions {
  readonly ttl: number;
  readonly maxHold: number;
  readonly grace?: number;
  readonly onLost: OnLost;
  readonly foreground?: true;
  readonly nohup?: true;
  readonly owner?: string;
  readonly reason?: string;
  readonly shell?: string;
}

interface Flags extends CommandFlags {
  readonly shared?: true;
  readonly limit?: number;
  readonly wait: number;
  readonly ifHeld: "wait" | "skip" | "fail";
  readonly heldExit?: number;
  readonly minHold: number;
}

/** Defines the command `run` and its flags. */
export function runCommandDefinition(program: Command): void {
  const command = withCommon(program.command("run"))
    .summary("run a command under a lock")
    .description(
      "Runs a command under a lock: waits for the lock, renews it while the command runs, and releases it. " +
        "If the lock is about to be lost, the command is ended before the lease ends. A forced release does not wait for that.",
    )
    .option("--shared", "lock as one of many readers")
    .option("--limit <n>", "lock as one of at most n holders; all clients need the same n", wholeNumber(1))
    .addOption(
      timeOption("--wait <time>", "how long to wait for the lock: 0, 5m, forever", durationOrForever, "10s"),
    )
    .addOption(
      new Option("--if-held <what>", "wait, skip (exit 0 at once) or fail (exit 75 at once)")
        .choices(["wait", "skip", "fail"])
        .default("wait"),
    )
    .option("-E, --held-exit <code>", "exit code if the lock was not acquired (75)", wholeNumber(0, 255))
    .addOption(
      timeOption(
        "--min-hold <time>",
        "hold the lock at least for this time, for jobs that clocks start",
        duration,
        "0",
      ),
    );
  withCommandFlags(command).action(async (...given: Parameters<Action>) => {
    const options = readRun(...read<Flags>(...given));
    const { run } = await import("./run.ts");
    endWith(await run(options));
  });
}

interface OnceFlags extends CommandFlags {
  readonly for?: number;
  readonly heldExit: number;
}

/** Defines the command `once` and its flags. */
export function onceCommandDefinition(program: Command): void {
  const command = withCommon(program.command("once"))
    .summary("run a command at most once in a period")
    .description(
      "Runs a command at most once in a period, on any number of machines. After a success the lock stays until the end of the " +
        "period, also if the command ends sooner. After a failure the lock is released, and another machine may try.",
    )
    .option("--for <time>", "the period, from the start, up to 24h; required", duration)
    .option(
      "-E, --held-exit <code>",
      "exit code if the command ran already, or runs now",
      wholeNumber(0, 255),
      exitCodes.done,
    );
  withCommandFlags(command).action(async (...given: Parameters<Action>) => {
    const [{ keys, words }, flags] = read<OnceFlags>(...given);
    const { for: keepForMs, heldExit } = flags;
    if (keepForMs === undefined) {
      throw new Exit(
        exitCodes.usage,
        `--for is missing; write: holdfast once ${keys[0]} --for 20h -- COMMAND`,
      );
    }
    const options = {
      ...commonOf(words, { ...flags, ttl: Math.min(flags.ttl, Math.max(keepForMs, minPeriodMs)) }),
      // A lease of several keys keeps its labels, so they would be wrong after the run.
      ...(keys.length === 1 && { labels: onceLabels("running", keepForMs) }),
      keys,
      among: "one",
      waitMs: 0,
      mayWait: false,
      minHoldMs: 0,
    } as const;
    const { run } = await import("./run.ts");
    endWith(await run({ ...options, heldExit, keepForMs }));
  });
}

type Action = (first: string | undefined, rest: readonly string[], flags: unknown, command: Command) => void;

/** The arguments of `run` and `once`, and all flags, also those between the key and `--`. */
function read<F>(...[first, rest, , command]: Parameters<Action>): [KeyAndCommand, F] {
  const target = keyAndCommand(first === undefined ? [] : [first, ...rest], command);
  return [target, command.opts() as F];
}

/** Exits at once, without waiting for closing connections, because the caller waits. */
function endWith(code: number): void {
  if (process.platform === "win32") {
    process.stderr.write("", () => process.exit(code)); // messages to a pipe may still be on their way
  } else {
    process.exit(code); // even an empty message would wait for a terminal that has stopped
  }
}

const endings = `
When holdfast ends the command (--on-lost kill), and how:
  the lease cannot be renewed     TERM, and KILL after --grace, at the end of the lease
  --max-hold has passed           TERM, and KILL after --grace; the lease is renewed until then
  the lock was broken, its key was deleted, or holdfast or the machine was stopped
  until the lease had ended       KILL without TERM, because another holder may already work`;

/** The arguments and options of `run` and `once`. */
function withCommandFlags(command: Command): Command {
  return command
    .addHelpText("after", endings)
    .usage("[options] <key> [options] -- <command...>")
    .argument("[key]", "the key to lock; with --key the command begins here, and -- may be omitted")
    .argument("[command...]", "the command and its arguments, after --; no shell is involved")
    .passThroughOptions()
    .option(
      "-k, --key <key>",
      "the key to lock, instead of the argument; repeated: all keys or none",
      collected,
    )
    .addOption(
      timeOption(
        "--ttl <time>",
        "the delay for others after a crash; renewed at a third of it",
        duration,
        "30s",
      ),
    )
    .addOption(
      timeOption(
        "--max-hold <time>",
        "end the command after this time, for jobs that hang: TERM, and KILL after the grace",
        durationOrForever,
        "forever",
      ),
    )
    .option(
      "--grace <time>",
      "from TERM to KILL, before the end of the lease; less than half of the TTL (5s, or a quarter of the TTL)",
      duration,
    )
    .option("--on-lost <what>", "at a loss, or at --max-hold: kill, warn, or signal=USR1", onLost, "kill")
    .option(
      "--foreground",
      "keep the terminal, for interactive commands; then child processes of the command are not ended",
    )
    .option("--nohup", "go on after the terminal has closed; a nohup before holdfast has no effect on it")
    .option("--owner <text>", "the owner, shown by inspect")
    .option("--reason <text>", "the reason, shown by inspect")
    .option("-c, --shell <line>", "run this line by /bin/sh instead of a command");
}

function readRun({ keys, words }: KeyAndCommand, flags: Flags): RunOptions {
  const { limit, ifHeld, minHold: minHoldMs, maxHold: maxHoldMs } = flags;
  if (flags.shared && limit !== undefined) {
    throw new Exit(exitCodes.usage, "expected --shared or --limit, got both");
  }
  if (limit !== undefined && keys.length > 1) {
    throw new Exit(exitCodes.usage, "--limit is for one --key");
  }
  if (minHoldMs > maxHoldMs) {
    throw new Exit(exitCodes.usage, "expected --min-hold to be at most --max-hold");
  }
  return {
    ...commonOf(words, flags),
    keys,
    among: limit === undefined ? (flags.shared ? "shared" : "one") : { limit },
    waitMs: ifHeld === "wait" ? flags.wait : 0,
    mayWait: ifHeld === "wait",
    heldExit: flags.heldExit ?? (ifHeld === "skip" ? exitCodes.done : exitCodes.notAcquired),
    minHoldMs,
  };
}

function commonOf(
  words: readonly string[],
  flags: CommandFlags,
): Omit<RunOptions, "keys" | "among" | "waitMs" | "mayWait" | "heldExit" | "minHoldMs"> {
  const { ttl: ttlMs, grace: graceMs = Math.min(5_000, Math.floor(ttlMs / 4)), maxHold: maxHoldMs } = flags;
  if (graceMs >= ttlMs / 2) {
    throw new Exit(
      exitCodes.usage,
      `--grace has to be less than half of the TTL (${formatDuration(ttlMs)}), got ${formatDuration(graceMs)}`,
    );
  }
  if (maxHoldMs < minMaxHoldMs) {
    const least = formatDuration(minMaxHoldMs);
    throw new Exit(
      exitCodes.usage,
      `--max-hold has to be at least ${least}, got ${formatDuration(maxHoldMs)}`,
    );
  }
  return {
    ...programOf(words, flags.shell),
    ttlMs,
    graceMs,
    maxHoldMs,
    onLost: flags.onLost,
    inForeground: flags.foreground === true,
    nohup: flags.nohup === true,
    owner: flags.owner ?? defaultOwner(),
    reason: flags.reason,
    target: flags,
    voice: output(flags),
  };
}

function programOf(
  words: readonly string[],
  shell: string | undefined,
): { program: string; args: readonly string[] } {
  const [program, ...args] = words;
  if (shell !== undefined) {
    return { program: "/bin/sh", args: ["-c", shell, ...(program === undefined ? [] : [program, ...args])] };
  }
  if (program === undefined) {
    throw new Exit(
      exitCodes.usage,
      "no command is given; write it after --, as in: holdfast run deploy -- ./deploy.sh",
    );
  }
  return { program, args };
}

function collected(key: string, before: readonly string[] = []): readonly string[] {
  return [...before, key];
}

function onLost(text: string): OnLost {
  if (text === "kill" || text === "warn") {
    return text;
  }
  const name = /^signal=(?:SIG)?(HUP|INT|QUIT|TERM|USR1|USR2)$/.exec(text)?.[1];
  if (name === undefined) {
    throw new InvalidArgumentError(
      "Expected kill, warn, or signal= and one of HUP, INT, QUIT, TERM, USR1, USR2.",
    );
  }
  return { signal: `SIG${name}` as NodeJS.Signals };
}
