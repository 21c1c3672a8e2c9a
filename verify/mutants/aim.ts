import type { Found, Sources } from "./sources.ts";
import { placeInFile } from "./sources.ts";
import { bodyOf, descendants, type Kind, type Node, type Place } from "./syntax/node.ts";
import { sourceOf, type Operator } from "./syntax/operators.ts";

/** A change of a file. */
export interface FileChange extends Place {
  /** Below the root. */
  readonly file: string;
  readonly replacement: string;
}

/** A change of the one place with a shape in a function, wherever the function is and however its code is written. */
export interface Aim {
  /** As `Sources.find` takes it. */
  readonly owner: string;
  /** The last one is changed. The others are around it. */
  readonly shapes: readonly Shape[];
  readonly operator: Operator;
}

/**
 * A form of a node. Of nodes inside each other the innermost counts. Names of local variables are none, because they say nothing about the
 * place, and change.
 */
export interface Shape {
  readonly kind: Kind | "phrase";
  /** The callee of a call, the variable or property of a value, the operator of an operation, the text of a literal. */
  readonly name?: string;
  /** Names, texts and numbers that occur in the node. */
  readonly mentions: readonly string[];
}

type ByMentions = (...mentions: string[]) => Shape;
type ByName = (name: string, ...mentions: string[]) => Shape;

function shape(kind: Kind): ByMentions {
  return (...mentions) => ({ kind, mentions });
}

function named(kind: Shape["kind"]): ByName {
  return (name, ...mentions) => ({ kind, name, mentions });
}

/** A statement that mentions all names. */
export const statement: ByMentions = shape("statement");
/** The condition of an `if`, a loop or a choice. */
export const condition: ByMentions = shape("condition");
/** An operand of `and` or `or`. */
export const operand: ByMentions = shape("operand");
export const returned: ByMentions = shape("returned");
export const negation: ByMentions = shape("negation");
/** An element of an array or an argument of a call. */
export const element: ByMentions = shape("element");
/** A call by the last name of its callee, or by its command of Redis. */
export const call: ByName = named("call");
/** The value that a variable or property gets. */
export const value: ByName = named("value");
export const operation: ByName = named("operation");
export const literal: ByName = named("literal");
/** Words in a text, with any white space between them. */
export const phrase: ByName = named("phrase");

export function at(owner: string, shapes: Shape | readonly Shape[], operator: Operator): Aim {
  return { owner, shapes: [shapes].flat(), operator };
}

/** @throws {Error} if not exactly one place has the shape */
export function resolve(sources: Sources, { owner, shapes, operator }: Aim): FileChange {
  const found = sources.find(owner);
  if (found.length === 0) {
    throw new Error(`aims at ${owner}, but no function has this name`);
  }
  const changes = new Map<string, FileChange>();
  for (const { program, node } of found.flatMap((one) => placesIn(one, shapes))) {
    const { start, end, replacement } = operator(node, program.text);
    const { file, offset } = placeInFile(program, start);
    changes.set(`${file}:${offset}`, { file, start: offset, end: offset + end - start, replacement });
  }
  const [change, ...others] = changes.values();
  if (!change || others.length > 0) {
    throw new Error(describe(owner, shapes, found, [...changes.keys()]));
  }
  return change;
}

function placesIn({ program, node }: Found, shapes: readonly Shape[]): Found[] {
  const locals = new Set(
    node.kind !== "function" || program.tree === node
      ? []
      : descendants(node).flatMap(({ declares = [] }) => declares),
  );
  let places = bodyOf(node);
  for (const [index, one] of shapes.entries()) {
    const inside = index === 0 ? places : places.flatMap((place) => descendants(place).slice(1));
    places =
      one.kind === "phrase"
        ? phrasesIn(inside, program.text, one.name ?? "")
        : innermost(inside, one, locals);
  }
  return places.map((place) => ({ program, node: place }));
}

function innermost(
  nodes: readonly Node[],
  { kind, name, mentions }: Shape,
  locals: ReadonlySet<string>,
): Node[] {
  const matching = new Set(
    nodes.filter(
      (node) =>
        node.kind === kind &&
        (name === undefined || (node.name === name && !(kind === "value" && locals.has(name)))) &&
        mentionsAll(node, locals, mentions),
    ),
  );
  return [...matching].filter(
    (node) => !descendants(node).some((other) => other !== node && matching.has(other)),
  );
}

function mentionsAll(node: Node, locals: ReadonlySet<string>, mentions: readonly string[]): boolean {
  const inside = mentions.length === 0 ? [] : descendants(node);
  const isMention = ({ kind, name = "" }: Node): boolean =>
    kind !== "operation" && (kind !== "variable" || !locals.has(name));
  return mentions.every((word) => inside.some((one) => one.name === word && isMention(one)));
}

function phrasesIn(nodes: readonly Node[], text: string, words: string): Node[] {
  const parts = words.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const pattern = new RegExp(parts.join(String.raw`\s+`), "g");
  return nodes
    .filter(({ kind }) => kind === "literal")
    .flatMap(({ start, end }) =>
      [...text.slice(start, end).matchAll(pattern)].map(({ 0: found, index }): Node => {
        const from = start + index;
        return { kind: "literal", start: from, end: from + found.length, children: [] };
      }),
    );
}

/** The message for an aim without exactly one place: the places with the shape, or all nodes of the last shape's kind. */
function describe(
  owner: string,
  shapes: readonly Shape[],
  found: readonly Found[],
  places: string[],
): string {
  const wanted = shapes.map(
    ({ kind, name = "", mentions }) => `${kind} ${name} with "${mentions.join('", "')}"`,
  );
  const kind = shapes.at(-1)?.kind;
  const present = found.flatMap(({ program, node }) =>
    bodyOf(node)
      .filter((one) => one.kind === (kind === "phrase" ? "literal" : kind))
      .map((one) => sourceOf(one, program.text).replaceAll(/\s+/g, " ").slice(0, 80)),
  );
  const instead = places.length > 0 ? places : present.slice(0, 12);
  const count = `found ${places.length} places instead of 1. There is:`;
  return [`aims at ${owner}, ${wanted.join(" > ")}: ${count}`, ...instead].join("\n    ");
}
