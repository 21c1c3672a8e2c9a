/** The parts of a program's syntax that mutants aim at and change. Both languages are read into this form. */
export interface Node {
  readonly kind: Kind;
  /** Offsets in the text of the module or script. */
  readonly start: number;
  readonly end: number;
  /** The name of a function, callee, declared variable or property; the text of a literal, name or operator. */
  readonly name?: string;
  /** Of an operation: where its operator is. */
  readonly operator?: Place;
  /** Of a call: its arguments, which are children too. */
  readonly parameters?: readonly Node[];
  /** The variables and parameters that the node declares. */
  readonly declares?: readonly string[];
  readonly children: readonly Node[];
}

/** A condition, an operand of `and` or `or`, a returned expression and a value contain one node of the same extent: the expression. */
export type Kind =
  | "function"
  | "statement"
  | "call"
  | "operation"
  | "negation"
  | "literal"
  | "condition"
  | "operand"
  | "returned"
  /** The expression that a declaration, an assignment or a property assigns. */
  | "value"
  /** An element of an array or table, or an argument. */
  | "element"
  /** A name that a scope declares, or a global one. */
  | "variable"
  /** A name of a property. */
  | "property"
  | "other";

export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A replacement of a place. */
export interface Change extends Place {
  readonly replacement: string;
}

/** The node and all nodes in it. */
export function descendants(node: Node, found: Node[] = []): Node[] {
  found.push(node);
  for (const child of node.children) {
    descendants(child, found);
  }
  return found;
}

/** The nodes inside a function that belong to no function with a name of its own inside it. */
export function bodyOf(node: Node, found: Node[] = []): Node[] {
  for (const child of node.children) {
    if (child.kind !== "function") {
      found.push(child);
      bodyOf(child, found);
    }
  }
  return found;
}
