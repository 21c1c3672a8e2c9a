import { parseSync } from "oxc-parser";

import type { Kind, Node } from "./node.ts";

/** The part of the parser's nodes that this file reads. */
interface Parsed {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const statements =
  /^(Expression|If|While|For|ForOf|Return|Throw|Break|Continue|Try|Switch)Statement$|^VariableDeclaration$/;
const functions = /^(FunctionExpression|ArrowFunctionExpression)$/;

/** The roles of children, by the type of the parent and its field. */
const roles: Readonly<Record<string, Kind>> = {
  "IfStatement.test": "condition",
  "WhileStatement.test": "condition",
  "ForStatement.test": "condition",
  "ConditionalExpression.test": "condition",
  "LogicalExpression.left": "operand",
  "LogicalExpression.right": "operand",
  "ReturnStatement.argument": "returned",
  "VariableDeclarator.init": "value",
  "Property.value": "value",
  "PropertyDefinition.value": "value",
  "AssignmentExpression.right": "value",
  "ArrayExpression.elements": "element",
  "CallExpression.arguments": "element",
  "NewExpression.arguments": "element",
};

/** @throws {Error} if the module has a syntax error */
export function parseTypeScript(file: string, text: string): Node {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) {
    throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  }
  return new Reader(text).read(program as unknown as Parsed, "");
}

class Reader {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** @param owner the name of the class around the node, with a dot; undefined: the node is in a function, whose functions have no names */
  read(parsed: Parsed, owner: string | undefined): Node {
    const { type } = parsed;
    const isFunction = functions.test(type) || type === "FunctionDeclaration";
    const inner = /^Class(Decl|Expr)/.test(type)
      ? `${nameOf(parsed["id"])}.`
      : isFunction
        ? undefined
        : owner;
    const children = Object.entries(parsed).flatMap(([field, value]) =>
      [value]
        .flat()
        .filter(isProgram)
        .map((child) => this.#wrapped(parsed, field, child, inner)),
    );
    return { ...this.#own(parsed, owner), start: parsed.start, end: parsed.end, children };
  }

  /** A child with its role, if the parent gives it one. */
  #wrapped(parent: Parsed, field: string, child: Parsed, owner: string | undefined): Node {
    const read = this.read(child, owner);
    const isKey = field === "property" || field === "key" || child.type === "PrivateIdentifier";
    const isName = isKey && read.kind === "variable" && parent["computed"] !== true;
    const node: Node = isName ? { ...read, kind: "property" } : read;
    const role = roleOf(parent, field, child);
    if (role === undefined) {
      return node;
    }
    const { start, end } = node;
    return { kind: role, start, end, children: [node], ...(role === "value" && { name: assigned(parent) }) };
  }

  #own(parsed: Parsed, owner: string | undefined): Own {
    const { type } = parsed;
    const read = owns[type];
    return read ? read(parsed, owner, this) : { kind: statements.test(type) ? "statement" : "other" };
  }

  /** The operator of an operation follows its left side. */
  operation(parsed: Parsed): Own {
    const name = parsed["operator"] as string;
    const start = this.#text.indexOf(name, (parsed["left"] as Parsed).end);
    return { kind: "operation", name, operator: { start, end: start + name.length } };
  }
}

type Own = Omit<Node, "start" | "end" | "children">;
type OwnReader = (parsed: Parsed, owner: string | undefined, reader: Reader) => Own;

const functionExpression: OwnReader = (parsed) => ({ kind: "other", declares: bound(parsed["params"]) });
const operation: OwnReader = (parsed, _, reader) => reader.operation(parsed);
const variable: OwnReader = (parsed) => ({ kind: "variable", name: nameOf(parsed) });
const call: OwnReader = (parsed, owner, reader) => ({
  kind: "call",
  name: nameOf(parsed["callee"]),
  parameters: (parsed["arguments"] as Parsed[]).map((argument) => reader.read(argument, owner)),
});
const declaration: OwnReader = (parsed, owner) => {
  const { type, id, key, init, value } = parsed;
  const assigned = init ?? value;
  const isFunction = owner !== undefined && isParsed(assigned) && functions.test(assigned.type);
  return {
    kind: isFunction ? "function" : "other",
    name: type === "PropertyDefinition" ? `${owner}${nameOf(key)}` : nameOf(id),
    declares: bound(id),
  };
};

const owns: Readonly<Record<string, OwnReader>> = {
  FunctionDeclaration: (parsed, owner) => ({
    kind: owner === undefined ? "other" : "function",
    name: nameOf(parsed["id"]),
    declares: bound(parsed["params"]),
  }),
  FunctionExpression: functionExpression,
  ArrowFunctionExpression: functionExpression,
  MethodDefinition: (parsed, owner) => ({ kind: "function", name: `${owner}${nameOf(parsed["key"])}` }),
  PropertyDefinition: declaration,
  VariableDeclarator: declaration,
  CatchClause: (parsed) => ({ kind: "other", declares: bound(parsed["param"]) }),
  CallExpression: call,
  NewExpression: call,
  BinaryExpression: operation,
  LogicalExpression: operation,
  AssignmentExpression: operation,
  UnaryExpression: (parsed) => ({ kind: parsed["operator"] === "!" ? "negation" : "other" }),
  Literal: (parsed) => ({ kind: "literal", name: String(parsed["value"] ?? parsed["raw"]) }),
  TemplateElement: (parsed) => ({ kind: "literal", name: (parsed["value"] as { raw: string }).raw }),
  Identifier: variable,
  PrivateIdentifier: variable,
};

function roleOf({ type }: Parsed, field: string, child: Parsed): Kind | undefined {
  const isConcise = type === "ArrowFunctionExpression" && field === "body" && child.type !== "BlockStatement";
  return isConcise ? "returned" : roles[`${type}.${field}`];
}

function assigned(parent: Parsed): string {
  return nameOf(parent["id"] ?? parent["key"] ?? parent["left"]);
}

/** The last name of an identifier, a property or a callee. */
function nameOf(value: unknown): string {
  if (!isParsed(value)) {
    return "";
  }
  const name = value.type === "PrivateIdentifier" ? `#${String(value["name"])}` : value["name"];
  return typeof name === "string"
    ? name
    : value.type === "Literal"
      ? String(value["value"])
      : nameOf(value["property"] ?? value["expression"]);
}

/** The names that a pattern or parameter list declares. */
function bound(value: unknown): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(bound);
  } else if (!isParsed(value)) {
    return [];
  } else if (value.type === "Identifier") {
    return [value["name"] as string];
  }
  const { properties, elements, argument, left } = value;
  return bound(value.type === "Property" ? value["value"] : (properties ?? elements ?? argument ?? left));
}

function isParsed(value: unknown): value is Parsed {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Whether a value is a node, and no node of a type. */
function isProgram(value: unknown): value is Parsed {
  return isParsed(value) && (!value.type.startsWith("TS") || "expression" in value);
}
