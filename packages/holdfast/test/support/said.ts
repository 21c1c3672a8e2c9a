/** All that a call of the script `operate` asks for: names, keys and arguments of its operations, one after the other. */
export function said(args: readonly string[]): readonly string[] {
  const [, , , operations = "[]"] = args;
  return operations.startsWith("[") ? (JSON.parse(operations) as string[]) : [];
}

/** An answer as one that is not the usual one says it: a usual grant is told by its first number, a usual release by 1. */
export function whole([name, ...args]: readonly string[], answer: unknown): readonly unknown[] {
  if (typeof answer !== "number" || (name !== "acquire" && name !== "release")) {
    return answer as readonly unknown[];
  }
  const [token, , , want] = args;
  return name === "release" ? [answer, 0, ""] : [1, answer, answer + Number(want) - 1, token];
}
