import type { Command } from "commander";

import { Exit, exitCodes } from "./exit.ts";

type Keys = readonly [string, ...string[]];

/** The keys, and the command to run under their locks. */
export interface KeyAndCommand {
  readonly keys: Keys;
  readonly words: readonly string[];
}

/** The key of a command that takes one key, as an argument or with `--key`. @throws {Exit} without a key, or with two */
export function oneKey(name: string, argument: string | undefined, flag: string | undefined): string {
  if (argument !== undefined && flag !== undefined) {
    throw usage(`expected one key, got "${argument}" and --key ${flag}`);
  }
  const key = argument ?? flag;
  if (key === undefined) {
    throw usage(`no key is given; write: holdfast ${name} KEY`);
  }
  return key;
}

/**
 * Reads the arguments of `run` and `once`. With `--key` all arguments are the command. Otherwise the first argument is the key, flags of
 * Holdfast may follow, and the command begins after `--`. Without that rule `run ./deploy.sh prod` would lock "./deploy.sh" and run `prod`.
 * The flags after the key are added to the options of `command`.
 * @throws {Exit} with the line to write instead
 */
export function keyAndCommand(given: readonly string[], command: Command): KeyAndCommand {
  const name = command.name();
  const { key: keys } = command.opts<{ key?: Keys }>();
  if (keys !== undefined) {
    return { keys, words: given };
  }
  const [key, ...rest] = given;
  if (key === undefined || isAfterSeparator(given, command)) {
    throw usage(
      `no key is given; write: holdfast ${name} KEY -- ${given.length === 0 ? "COMMAND" : shown(given)}`,
    );
  }
  const separator = rest.includes("--") ? rest.indexOf("--") : rest.length;
  readFlags(key, rest.slice(0, separator), rest.slice(separator), command);
  return { keys: [key], words: rest.slice(separator + 1) };
}

/**
 * Commander ends the flags at the first argument, so the flags between the key and `--` are read here.
 * @param rest the words from `--` on; empty without `--`
 */
function readFlags(key: string, words: readonly string[], rest: readonly string[], command: Command): void {
  const name = command.name();
  const { operands, unknown } = command.parseOptions([...words]);
  if (unknown.includes("--help") || unknown.includes("-h")) {
    command.help();
  }
  if (unknown.length > 0) {
    throw usage(`unknown option ${unknown[0]}; holdfast ${name} --help lists the options`);
  }
  if (operands.length > 0 && rest.length > 0) {
    const keys = [key, ...operands];
    const [quoted, several] = [[keys.join(" ")], keys.flatMap((one) => ["-k", one])];
    throw usage(
      `expected one key before --, got ${keys.map((one) => `"${one}"`).join(" and ")}; for a key with spaces write: ` +
        `holdfast ${name} ${shown([...quoted, ...rest])}; for several keys: holdfast ${name} ${shown([...several, ...rest])}`,
    );
  } else if (operands.length > 0) {
    throw usage(`expected -- before the command; write: holdfast ${name} ${shown([key, "--", ...operands])}`);
  }
  const { key: others } = command.opts<{ key?: Keys }>();
  if (others !== undefined) {
    throw usage(`expected one key before --, or all keys with --key; got "${key}" and --key ${others[0]}`);
  }
}

/** Whether `--` comes before the first argument. Commander removes that `--`. */
function isAfterSeparator(given: readonly string[], { parent }: Command): boolean {
  const raw = (parent as (Command & { rawArgs: readonly string[] }) | null)?.rawArgs ?? [];
  return raw[raw.length - given.length - 1] === "--";
}

/** Words as a shell reads them. */
function shown(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

function usage(message: string): Exit {
  return new Exit(exitCodes.usage, message);
}
