import type { Site } from "./site.ts";

const swaps: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "==": "~=",
  "~=": "==",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  and: "or",
  or: "and",
  not: "",
  true: "false",
  false: "true",
  "math.max": "math.min",
  "math.min": "math.max",
};

/** The tokens of Lua: comments and strings, which do not change, then numbers, names (with `math.max` as one), and operators. */
const token =
  /--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\d+(?:\.\d+)?(?:e\d+)?|math\.\w+|\w+|\.\.\.?|[=~<>]=|[^\s]/g;

/** A call or an assignment that is a whole line. */
const statement = /^[ \t]*(?!local\b|return\b|function\b)(?:[\w.]+\(.*\)|[\w.[\]]+(?:, \w+)* = .*[^({,])$/gm;

/** All places in a script where a mechanical mutant may change something: operators, constants, and removable statements. */
export function sitesOfLua(text: string): Site[] {
  const sites: Site[] = [];
  let before = "";
  for (const { 0: source, index } of text.matchAll(token)) {
    const end = index + source.length;
    const isSign = source === "-" && !/[\w)\]]$/.test(before);
    sites.push(
      ...(isSign ? [] : replacements(source)).map((replacement) => ({ start: index, end, replacement })),
    );
    before = source.startsWith("--") ? before : source;
  }
  for (const { 0: line, index } of text.matchAll(statement)) {
    if (isWholeToken(line)) {
      sites.push({ start: index, end: index + line.length, replacement: "" });
    }
  }
  return sites;
}

function replacements(source: string): string[] {
  const swap = swaps[source];
  if (swap !== undefined) {
    return [swap];
  }
  if (!/^\d/.test(source)) {
    return [];
  }
  return Number(source) === 0 ? ["1"] : ["0", `(${source} * 2)`];
}

/** Whether all brackets of a line are closed in the line. */
function isWholeToken(line: string): boolean {
  const plain = line.replace(/'[^']*'|"[^"]*"/g, "");
  const count = (pattern: RegExp): number => (plain.match(pattern) ?? []).length;
  return count(/[([{]/g) === count(/[)\]}]/g) && !/\bfunction\b|\bthen\b/.test(plain);
}
