import type { Kind, Node } from "./node.ts";

/** Binary operators, from those that bind least. */
const levels = ["or", "and", "< > <= >= ~= ==", "..", "+ -", "* / %", "not", "^"];
const precedence: ReadonlyMap<string, number> = new Map(
  levels.flatMap((operators, index) =>
    operators.split(" ").map((operator) => [operator, index + 1] as const),
  ),
);
const unaryPrecedence = 7;
const token =
  /--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\d+(?:\.\d+)?(?:e\d+)?|\w+|\.\.\.?|[=~<>]=|\S/g;
const endsOfBlock: ReadonlySet<string> = new Set(["end", "else", "elseif", "until", ""]);

/**
 * Reads a script of Lua 5.1, without long strings, `goto` and blocks of their own.
 * @throws {Error} if the script has a syntax error
 */
export function parseLua(text: string): Node {
  const tokens = [...text.matchAll(token)].filter(([source]) => !source.startsWith("--"));
  const parser = new Parser(tokens.map(({ 0: source, index }) => ({ text: source, start: index })));
  return parser.script(text.length);
}

interface Token {
  readonly text: string;
  readonly start: number;
}

type Parts = Pick<Node, "children" | "declares" | "name">;

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  script(length: number): Node {
    const children = this.#block();
    this.#expect("");
    return { kind: "function", name: "", start: 0, end: length, children };
  }

  get #next(): string {
    return this.#tokens[this.#at]?.text ?? "";
  }

  get #start(): number {
    return this.#tokens[this.#at]?.start ?? 0;
  }

  /** Whether the next token is the text, which is then passed. */
  #accept(text: string): boolean {
    const isNext = this.#next === text;
    this.#at += isNext ? 1 : 0;
    return isNext;
  }

  #expect(text: string): void {
    if (!this.#accept(text) && (text !== "" || this.#next !== "")) {
      throw new Error(`Expected ${text || "the end"} instead of ${this.#next} at ${this.#start}`);
    }
  }

  #take(): string {
    this.#at += 1;
    return this.#tokens[this.#at - 1]?.text ?? "";
  }

  #node(kind: Kind, start: number, children: readonly Node[], more: Partial<Node> = {}): Node {
    const last = this.#tokens[this.#at - 1] as Token;
    return { kind, start, end: last.start + last.text.length, children, ...more };
  }

  #block(): Node[] {
    const found: Node[] = [];
    while (!endsOfBlock.has(this.#next)) {
      found.push(this.#statement());
      this.#accept(";");
    }
    return found;
  }

  #statement(): Node {
    const start = this.#start;
    const read = this.#statements[this.#next];
    if (read) {
      this.#take();
      const { children, ...more } = read();
      return this.#node(more.name === undefined ? "statement" : "function", start, children, more);
    }
    const targets = this.#list("other");
    const names = targets.map(({ children: [target] }) => target?.name ?? "");
    const values = this.#accept("=") ? this.#list("value", names) : [];
    return this.#node("statement", start, [...targets, ...values]);
  }

  /** The statements by their first word, which is passed. */
  readonly #statements: Readonly<Record<string, () => Parts>> = {
    if: () => {
      const children: Node[] = [];
      do {
        children.push(this.#role("condition"));
        this.#expect("then");
        children.push(...this.#block());
      } while (this.#accept("elseif"));
      return { children: [...children, ...(this.#accept("else") ? this.#block() : []), ...this.#end()] };
    },
    while: () => ({ children: [this.#role("condition"), ...this.#body()] }),
    repeat: () => {
      const children = this.#block();
      this.#expect("until");
      return { children: [...children, this.#role("condition")] };
    },
    for: () => {
      const declares = this.#names();
      this.#take(); // `=` or `in`
      return { declares, children: [...this.#list("other"), ...this.#body()] };
    },
    return: () => ({ children: endsOfBlock.has(this.#next) ? [] : this.#list("returned") }),
    break: () => ({ children: [] }),
    function: () => ({ name: this.#path(), ...this.#function() }),
    local: () => {
      if (this.#accept("function")) {
        return { name: this.#take(), ...this.#function() };
      }
      const declares = this.#names();
      return { declares, children: this.#accept("=") ? this.#list("value", declares) : [] };
    },
  };

  #body(): Node[] {
    this.#expect("do");
    return [...this.#block(), ...this.#end()];
  }

  #end(): [] {
    this.#expect("end");
    return [];
  }

  #names(): string[] {
    const names = [this.#take()];
    while (this.#accept(",")) {
      names.push(this.#take());
    }
    return names;
  }

  #path(): string {
    let path = this.#take();
    while (this.#accept(".")) {
      path += `.${this.#take()}`;
    }
    return path;
  }

  /** The parameters and the body of a function. */
  #function(): Parts {
    this.#expect("(");
    const declares = this.#next === ")" ? [] : this.#names();
    this.#expect(")");
    return { declares, children: [...this.#block(), ...this.#end()] };
  }

  /** An expression in a role. */
  #role(kind: Kind, name?: string): Node {
    const start = this.#start;
    const inner = this.#expression(0);
    return this.#node(kind, start, [inner], name === undefined ? {} : { name });
  }

  #list(kind: Kind, names: readonly string[] = []): Node[] {
    const found = [this.#role(kind, names[0])];
    while (this.#accept(",")) {
      found.push(this.#role(kind, names[found.length]));
    }
    return found;
  }

  #expression(least: number): Node {
    const start = this.#start;
    let left = this.#unary();
    for (
      let level = precedence.get(this.#next) ?? 0;
      level > least;
      level = precedence.get(this.#next) ?? 0
    ) {
      const operator = { start: this.#start, end: this.#start + this.#next.length };
      const name = this.#take();
      const rightStart = this.#start;
      const right = this.#expression(name === ".." || name === "^" ? level - 1 : level);
      const isLogical = name === "and" || name === "or";
      const sides = isLogical
        ? [
            { kind: "operand" as const, start, end: left.end, children: [left] },
            { kind: "operand" as const, start: rightStart, end: right.end, children: [right] },
          ]
        : [left, right];
      left = { kind: "operation", name, operator, start, end: right.end, children: sides };
    }
    return left;
  }

  #unary(): Node {
    const start = this.#start;
    if (["not", "-", "#"].includes(this.#next)) {
      const kind = this.#take() === "not" ? "negation" : "other";
      return this.#node(kind, start, [this.#expression(unaryPrecedence)]);
    }
    return this.#suffixed(start);
  }

  #suffixed(start: number): Node {
    let node = this.#primary(start);
    for (let next = this.#suffix(start, node); next; next = this.#suffix(start, node)) {
      node = next;
    }
    return node;
  }

  /** The node together with a property, an index or arguments; undefined: none of them follows. */
  #suffix(start: number, node: Node): Node | undefined {
    if (this.#accept(".") || this.#accept(":")) {
      const at = this.#start;
      const name = this.#take();
      return this.#node("other", start, [node, this.#node("property", at, [], { name })], { name });
    } else if (this.#accept("[")) {
      const index = this.#expression(0);
      this.#expect("]");
      return this.#node("other", start, [node, index]);
    } else if (this.#accept("(")) {
      const parameters = this.#next === ")" ? [] : this.#list("element");
      this.#expect(")");
      return this.#node("call", start, [node, ...parameters], {
        name: calleeOf(node, parameters),
        parameters,
      });
    }
    return undefined;
  }

  #primary(start: number): Node {
    if (this.#accept("(")) {
      const inner = this.#expression(0);
      this.#expect(")");
      return this.#node("other", start, [inner]);
    } else if (this.#accept("{")) {
      const children: Node[] = [];
      while (this.#next !== "}") {
        const isComputed = this.#accept("[");
        const isNamed = isComputed || this.#tokens[this.#at + 1]?.text === "=";
        const name = isNamed ? this.#take() : "";
        if (isComputed) {
          this.#expect("]");
        }
        children.push(this.#accept("=") ? this.#role("value", name) : this.#role("element"));
        this.#accept(",");
      }
      this.#expect("}");
      return this.#node("other", start, children);
    } else if (this.#accept("function")) {
      const { children, ...more } = this.#function();
      return this.#node("other", start, children, more);
    }
    const text = this.#take();
    if (/^['"]/.test(text)) {
      return this.#node("literal", start, [], { name: text.slice(1, -1) });
    } else if (/^(\d|true$|false$|nil$)/.test(text)) {
      return this.#node("literal", start, [], { name: text });
    }
    return this.#node("variable", start, [], { name: text });
  }
}

/** The last name of the callee. `redis.call('GET', …)` is named as its command. */
function calleeOf({ name = "" }: Node, [first]: readonly Node[]): string {
  const command = name === "call" || name === "pcall" ? first?.children[0] : undefined;
  return command?.kind === "literal" ? (command.name ?? "") : name;
}
