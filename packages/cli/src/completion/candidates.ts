import type { Command, Option } from "commander";

/** A word that completes the current one. */
export interface Candidate {
  readonly text: string;
  readonly description: string;
}

/**
 * The possible completions: these candidates, files, keys of locks, or those of the command at `words[start]`, which the shell itself
 * completes. `prefix` is the part of the current word before the value, as in `--key=`.
 */
export type Completion =
  | { readonly kind: "candidates"; readonly candidates: readonly Candidate[] }
  | { readonly kind: "files"; readonly prefix: string }
  | { readonly kind: "keys"; readonly prefix: string }
  | { readonly kind: "command"; readonly start: number };

/** Completes the last word. `words` are the words after `holdfast`. */
export function completionOf(program: Command, words: readonly string[]): Completion {
  const [name = ""] = words;
  const current = words.at(-1) ?? "";
  if (words.length < 2) {
    return candidates([...commandsOf(program), ...optionsOf(program)], current);
  }
  const command = program.commands.find((one) => one.name() === name);
  return command === undefined ? nothing : completeCommand(command, words);
}

const nothing: Completion = { kind: "candidates", candidates: [] };

/** The words of a command before the current one. */
interface Scan {
  /** The option whose value the current word is. */
  readonly option: Option | undefined;
  readonly argumentCount: number;
  /** The index of the word after `--`; undefined before `--`. */
  readonly afterSeparator: number | undefined;
  /** The index of the first argument. */
  readonly firstArgument: number;
  readonly hasKey: boolean;
}

function completeCommand(command: Command, words: readonly string[]): Completion {
  const current = words.at(-1) as string;
  const scan = scanned(command, words);
  const start = startOfCommand(command, scan, current);
  if (start !== undefined) {
    return { kind: "command", start };
  } else if (scan.option !== undefined && isValueOf(scan.option, current)) {
    return valuesOf(scan.option, "", current);
  }
  return current.startsWith("-") && scan.afterSeparator === undefined
    ? completeFlag(command, current)
    : argumentValues(command, scan, current);
}

/** The index of the first word of the command to run; undefined if the current word is not part of that command. */
function startOfCommand(command: Command, scan: Scan, current: string): number | undefined {
  const { option, argumentCount, afterSeparator, firstArgument, hasKey } = scan;
  if (!takesCommand(command) || option !== undefined) {
    return undefined;
  }
  const isArgument = argumentCount > 0 || !current.startsWith("-");
  return afterSeparator ?? (hasKey && isArgument ? firstArgument : undefined);
}

function takesCommand(command: Command): boolean {
  return command.registeredArguments.some((argument) => argument.name() === "command");
}

function completeFlag(command: Command, current: string): Completion {
  const [, flag = "", value] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? [];
  if (value !== undefined) {
    const option = optionNamed(command, flag);
    return option === undefined ? nothing : valuesOf(option, `${flag}=`, value);
  }
  return candidates([...optionsOf(command), ...(takesCommand(command) ? [separator] : [])], current);
}

const separator: Candidate = { text: "--", description: "the command follows" };

function argumentValues(command: Command, { argumentCount }: Scan, current: string): Completion {
  const argument = command.registeredArguments[argumentCount];
  const name = argument?.name();
  if (name === "key" || name === "prefix") {
    return { kind: "keys", prefix: "" };
  }
  return candidates(name === "command" ? [separator] : (argument?.argChoices ?? []).map(plain), current);
}

function scanned(command: Command, words: readonly string[]): Scan {
  let scan: Scan = {
    option: undefined,
    argumentCount: 0,
    afterSeparator: undefined,
    firstArgument: words.length - 1,
    hasKey: false,
  };
  for (const [index, word] of words.slice(0, -1).entries()) {
    const isOver = scan.afterSeparator !== undefined || (scan.hasKey && scan.argumentCount > 0);
    if (index > 0 && !isOver) {
      scan = scannedWord(scan, command, word, index);
    }
  }
  return scan;
}

function takesValue(option: Option | undefined): boolean {
  return option?.required === true || option?.optional === true;
}

/** Whether a word after the option is its value. The value of some options may be absent. */
function isValueOf({ required }: Option, word: string): boolean {
  return required || !word.startsWith("-");
}

function scannedWord(scan: Scan, command: Command, word: string, index: number): Scan {
  if (scan.option !== undefined && isValueOf(scan.option, word)) {
    return { ...scan, option: undefined };
  } else if (word === "--") {
    return { ...scan, option: undefined, afterSeparator: index + 1 };
  } else if (!word.startsWith("-") || word === "-") {
    const firstArgument = scan.argumentCount === 0 ? index : scan.firstArgument;
    return { ...scan, firstArgument, argumentCount: scan.argumentCount + 1 };
  }
  const option = optionNamed(command, word.replace(/=.*$/s, ""));
  const hasKey = scan.hasKey || option?.long === "--key";
  return { ...scan, hasKey, option: takesValue(option) && !word.includes("=") ? option : undefined };
}

/** The values of an option. The name of its parameter says what it takes. */
function valuesOf(option: Option, prefix: string, current: string): Completion {
  if (option.flags.endsWith("<file>")) {
    return { kind: "files", prefix };
  }
  if (/[<[]key[\]>]$/.test(option.flags)) {
    return { kind: "keys", prefix };
  }
  const values = (option.argChoices ?? []).filter((value) => value.startsWith(current));
  return { kind: "candidates", candidates: values.map((value) => plain(`${prefix}${value}`)) };
}

function optionNamed(command: Command, flag: string): Option | undefined {
  return command.options.find(({ short, long }) => short === flag || long === flag);
}

function commandsOf(program: Command): Candidate[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .map((command) => ({ text: command.name(), description: command.summary() || command.description() }));
}

function optionsOf(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, description }) => ({ text: long ?? "", description }));
}

function candidates(all: readonly Candidate[], current: string): Completion {
  return { kind: "candidates", candidates: all.filter(({ text }) => text.startsWith(current)) };
}

function plain(text: string): Candidate {
  return { text, description: "" };
}
