/**
 * The names and arguments of all operations in one call of the scripts `execute` and `operate`. Empty for another script.
 * A lone form is shown in its general form.
 */
export function commandText(args: readonly string[]): readonly string[] {
  if (args[0] === "release" || args[0] === "acquire") {
    return generalForm(args);
  }
  const json = args.findIndex((arg) => arg.startsWith("["));
  if (json === 1 || json === 3) {
    return JSON.parse(args[json] ?? "[]") as string[];
  }
  return /^[a-z]+[A-Z]?[a-z]*$/.test(args[1] ?? "") ? args.slice(1) : [];
}

function generalForm([name = "", token = "", ...rest]: readonly string[]): readonly string[] {
  if (name === "release") {
    return [name, token, "", ...rest];
  }
  const [ttl = "", latest = "", wait = ""] = rest;
  const [, mode = "0", entryTail = ""] = /^(\d) \d+ (.*)$/.exec(wait) ?? [];
  return [name, token, entryTail, ttl, "1", mode, "", latest];
}

/**
 * A reply in its long form. The short form of a release is 1, and the short form of a grant is its first fencing token.
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
