import { Exit, exitCodes } from "./exit.ts";

/** The common options of all commands, and whether a value follows. */
const common: Readonly<Record<string, boolean>> = {
  "-u": true,
  "--url": true,
  "--url-file": true,
  "-q": false,
  "--quiet": false,
  "-v": false,
  "--verbose": false,
};

/**
 * Moves common options that precede the command after it: `-u URL ls` becomes `ls -u URL`.For an unknown command,
 * only its name remains, also after `help`. Then the error suggests another name, and no help hides the error.
 * @throws {Exit} if no command follows the options
 */
export function commandFirst(
  args: readonly string[],
  isCommand: (name: string) => boolean,
): readonly string[] {
  const at = optionsBefore(args);
  const [command, ...rest] = args.slice(at);
  if (command === undefined && at > 0) {
    throw new Exit(exitCodes.usage, `expected a command after ${args[0]}, as in: holdfast ls --url URL`);
  }
  if (command === undefined || command.startsWith("-")) {
    return args;
  }
  const [topic] = rest;
  const unknown = [command, ...(command === "help" && topic !== undefined ? [topic] : [])].find(
    (name) => !isCommand(name),
  );
  return unknown === undefined ? [command, ...args.slice(0, at), ...rest] : [unknown];
}

/** The number of words that are common options and their values. */
function optionsBefore(args: readonly string[]): number {
  let at = 0;
  for (let word = args[at]; word !== undefined; word = args[at]) {
    const [flag = ""] = word.split("=", 1);
    const takesValue = Object.hasOwn(common, flag) ? common[flag] : undefined;
    if (takesValue === undefined) break;
    at += takesValue && !word.includes("=") ? 2 : 1;
  }
  return at;
}
