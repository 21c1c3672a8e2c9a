/** The parsed options. An error is printed and ends the program with the code 2, and `--help` ends it with the usage. */
export function optionsOrExit<Options extends { readonly help: boolean }>(
  program: string,
  usage: string,
  parse: (args: readonly string[]) => Options,
): Options {
  let options: Options;
  try {
    options = parse(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${program}: ${(error as Error).message}\n`);
    process.exit(2);
  }
  if (options.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
  return options;
}

/** Servers and child processes end with this process, on `exit`. */
export function exitOnSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => process.exit(130));
  }
}

export function invalidOption(option: string, expected: string, given: string): TypeError {
  return new TypeError(`Expected --${option} to be ${expected}, got ${JSON.stringify(given)}`);
}

export function integerOption(option: string, text: string, [low, high]: readonly [number, number]): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw invalidOption(option, `an integer from ${low} to ${high}`, text);
  }
  return value;
}

/** The selected entries in the order of the list, and not of the command line. Without the option all are selected. */
export function selectedEntries<Entry extends { readonly name: string }>(
  option: string,
  text: string | undefined,
  known: readonly Entry[],
): readonly Entry[] {
  const names = text?.split(",").map((name) => name.trim());
  const unknownName = names?.find((name) => !known.some((entry) => entry.name === name));
  if (unknownName !== undefined) {
    const all = known.map(({ name }) => name).join(", ");
    throw invalidOption(option, `some of ${all}, separated by commas`, unknownName);
  }
  return names ? known.filter(({ name }) => names.includes(name)) : known;
}
