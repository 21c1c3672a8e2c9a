import { parseSync } from "oxc-parser";

import type { Site } from "./site.ts";

/** The part of a syntax node that this file reads. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const swaps: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "&&": "||",
  "||": "&&",
  "+=": "-=",
  "-=": "+=",
};

/** Expressions with an effect. A statement of one of them can be removed. */
const effects: ReadonlySet<string> = new Set([
  "CallExpression",
  "AssignmentExpression",
  "UpdateExpression",
  "AwaitExpression",
  "ChainExpression",
]);

/** All places in a module where a mechanical mutant may change something: operators, constants, conditions, and removable statements. */
export function sitesOfTypeScript(file: string, text: string): Site[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) {
    throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  }
  const sites: Site[] = [];
  visit(program as unknown as Node, (node) => {
    sites.push(...(siteFinders[node.type]?.(node, text) ?? []));
  });
  return sites;
}

function visit(node: Node, action: (node: Node) => void): void {
  action(node);
  for (const child of Object.values(node).flat()) {
    if (isNode(child) && (!child.type.startsWith("TS") || "expression" in child)) {
      visit(child, action);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

type SiteFinder = (node: Node, text: string) => Site[];

const siteFinders: Readonly<Record<string, SiteFinder>> = {
  BinaryExpression: operatorSwapped,
  LogicalExpression: operatorSwapped,
  AssignmentExpression: operatorSwapped,
  UnaryExpression: unwrapped,
  Literal: changedConstants,
  IfStatement: negated,
  ConditionalExpression: negated,
  ExpressionStatement: (node, text) =>
    effects.has((node["expression"] as Node).type) && !sourceOf(node, text).startsWith("super(")
      ? removed(node)
      : [],
  BreakStatement: removed,
  ContinueStatement: removed,
  MemberExpression: extremes,
};

function sourceOf({ start, end }: Node, text: string): string {
  return text.slice(start, end);
}

function removed({ start, end }: Node): Site[] {
  return [{ start, end, replacement: ";" }];
}

function negated(node: Node, text: string): Site[] {
  const test = node["test"] as Node;
  return [{ start: test.start, end: test.end, replacement: `!(${sourceOf(test, text)})` }];
}

/** The operand of a negation, without the `!`. */
function unwrapped(node: Node, text: string): Site[] {
  const { start, end } = node;
  return node["operator"] === "!" ? [{ start, end, replacement: `(${sourceOf(node, text).slice(1)})` }] : [];
}

function changedConstants(node: Node, text: string): Site[] {
  const { start, end } = node;
  return constants(sourceOf(node, text)).map((replacement) => ({ start, end, replacement }));
}

/** The swapped operator, if the operator has a counterpart. */
function operatorSwapped(node: Node, text: string): Site[] {
  const operator = node["operator"] as string;
  const replacement = swaps[operator];
  const start = text.indexOf(operator, (node["left"] as Node).end);
  return replacement === undefined ? [] : [{ start, end: start + operator.length, replacement }];
}

function constants(source: string): string[] {
  if (source === "true" || source === "false") {
    return [source === "true" ? "false" : "true"];
  }
  if (!/^\d/.test(source)) {
    return [];
  }
  const suffix = source.endsWith("n") ? "n" : "";
  return Number.parseInt(source.replaceAll("_", ""), 10) === 0
    ? [`1${suffix}`]
    : [`0${suffix}`, `(${source} * 2${suffix})`];
}

function extremes(node: Node, text: string): Site[] {
  const { start, end } = node;
  const other = { "Math.min": "Math.max", "Math.max": "Math.min" }[sourceOf(node, text)];
  return other === undefined ? [] : [{ start, end, replacement: other }];
}
