import { descendants, type Change, type Node, type Place } from "./node.ts";

/** A mechanical change of a node, for mutants with an aim and for random ones. */
export type Operator = (node: Node, text: string) => Change;

/** Removes a statement. */
export const removed: Operator = (node) => replace(node, "");

/** Replaces an expression. `$` in the replacement is the expression. */
export function by(replacement: string): Operator {
  return (node, text) =>
    replace(
      node,
      replacement.replaceAll("$", () => sourceOf(node, text)),
    );
}

/** Replaces a call by one of its arguments, counted from 1. */
export function byArgument(position: number): Operator {
  return (node, text) => replace(node, sourceOf(argumentOf(node, position), text));
}

/** Drops an argument of a call, counted from 1, and all later ones. */
export function withoutArgument(position: number): Operator {
  return (node) => {
    const start = position === 1 ? argumentOf(node, 1).start : argumentOf(node, position - 1).end;
    return replace({ start, end: argumentOf(node, node.parameters?.length ?? 0).end }, "");
  };
}

/** Calls another function of the same object, or another function of the module. */
export function byCallee(name: string): Operator {
  return (node, text) => {
    const { name: former = "", parameters: [first] = [] } = node;
    const start = text.lastIndexOf(former, first?.start ?? node.end);
    return replace({ start, end: start + former.length }, name);
  };
}

/** Adds an argument to a call. */
export function withArgument(added: string): Operator {
  return (node) => replace({ start: node.end - 1, end: node.end }, `, ${added})`);
}

/** Replaces the operator of an operation. */
export function byOperator(replacement: string): Operator {
  return ({ operator }) => {
    if (!operator) {
      throw new Error("expected an operation");
    }
    return replace(operator, replacement);
  };
}

const pairs = "< <=,> >=,+ -,* /,=== !==,&& ||,+= -=,== ~=,and or".split(",").map((pair) => pair.split(" "));
/** The operators, each with its counterpart. */
const counterparts: ReadonlyMap<string, string> = new Map(
  pairs.flatMap(([one = "", other = ""]) => [
    [one, other],
    [other, one],
  ]),
);
const extremes: ReadonlyMap<string, string> = new Map([
  ["min", "max"],
  ["max", "min"],
]);

/** All mechanical changes of a program, but none of its types, texts and comments. */
export function changesOf(program: Node, text: string, not: "!" | "not "): Change[] {
  return descendants(program).flatMap((node) => changesOfNode(node, text, not));
}

function changesOfNode(node: Node, text: string, not: string): Change[] {
  const { kind, name = "", start } = node;
  const source = sourceOf(node, text);
  const counterpart = counterparts.get(name);
  const extreme = /^[Mm]ath\.m..\(/.test(source) ? extremes.get(name) : undefined;
  if (kind === "condition") {
    return [replace(node, `${not}(${source})`)];
  } else if (kind === "negation") {
    return [replace(node, `(${source.slice(not.length)})`)];
  } else if (kind === "operation" && counterpart !== undefined) {
    return [byOperator(counterpart)(node, text)];
  } else if (kind === "literal") {
    return constantsFor(source).map((replacement) => replace(node, replacement));
  } else if (kind === "call" && extreme !== undefined) {
    return [replace({ start: start + 5, end: start + 8 }, extreme)];
  }
  return kind === "statement" && isEffect(node, source) ? [removed(node, text)] : [];
}

/** Whether a statement has an effect and can be removed: a call, an assignment, or a jump out of a loop. */
function isEffect(statement: Node, source: string): boolean {
  return (
    /^(break|continue)\b/.test(source) ||
    (!/^(local|const|let|return|if|for|while|repeat|do|throw|try|switch)\b|^super\(/.test(source) &&
      descendants(statement).some(({ kind, name }) => kind === "call" || kind === "value" || name === "="))
  );
}

function constantsFor(source: string): string[] {
  if (source === "true" || source === "false") {
    return [source === "true" ? "false" : "true"];
  } else if (!/^\d/.test(source)) {
    return [];
  }
  const suffix = source.endsWith("n") ? "n" : "";
  return Number.parseInt(source.replaceAll("_", ""), 10) === 0
    ? [`1${suffix}`]
    : [`0${suffix}`, `(${source} * 2${suffix})`];
}

function argumentOf({ parameters = [] }: Node, position: number): Node {
  const found = parameters[position - 1];
  if (!found) {
    throw new Error(`expected a call with an argument ${position}`);
  }
  return found;
}

function replace({ start, end }: Place, replacement: string): Change {
  return { start, end, replacement };
}

export function sourceOf({ start, end }: Place, text: string): string {
  return text.slice(start, end);
}
