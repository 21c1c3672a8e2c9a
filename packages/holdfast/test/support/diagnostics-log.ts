/**
 * All that a call of the scripts `execute` and `operate` asks for: names and arguments of its operations, one after the other. Of another
 * script nothing.
 */
export function commandText(args: readonly string[]): readonly string[] {
  const json = args.findIndex((arg) => arg.startsWith("["));
  if (json === 1 || json === 3) {
    return JSON.parse(args[json] ?? "[]") as string[];
  }
  return /^[a-z]+[A-Z]?[a-z]*$/.test(args[1] ?? "") ? args.slice(1) : [];
}

/**
 * An answer as one that is not the usual one says it: a usual release is told by 1, a usual grant by its first number.
 * @param isBlock the number is the first of as many as were asked for, as on a node of a quorum
 */
export function wholeCommand(
  [name, ...args]: readonly string[],
  answer: unknown,
  isBlock: boolean,
): readonly unknown[] {
  if (typeof answer !== "number" || (name !== "acquire" && name !== "release")) {
    return answer as readonly unknown[];
  }
  const [token, , , argCount] = args;
  const count = isBlock ? Number(argCount) : 1;
  return name === "release" ? [answer, 0, ""] : [1, answer, answer + count - 1, token];
}
