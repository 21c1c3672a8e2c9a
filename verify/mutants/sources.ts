import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { bodyOf, descendants, type Node } from "./syntax/node.ts";
import { parseLua } from "./syntax/lua.ts";
import { parseTypeScript } from "./syntax/typescript.ts";

/** The folder of all changed files, below the root. */
const folder = "packages/holdfast/src";
const includeLine = /^[ \t]*---[ \t]*@include[ \t]+"([^"\n]*)"[ \t]*$/gm;

/** A function of a program, or a value outside of all functions. */
export interface Found {
  readonly program: Program;
  readonly node: Node;
}

/** A module, or a script with all files that it includes. */
export interface Program {
  readonly text: string;
  readonly tree: Node;
  readonly owners: readonly Node[];
  /** The parts of the text by their order, each with its file below the root. */
  readonly parts: readonly Part[];
}

interface Part {
  /** The offset in the text of the program. */
  readonly start: number;
  readonly file: string;
  /** The offset in the file. */
  readonly offset: number;
}

/** The library's sources, as programs whose functions have names. */
export class Sources {
  readonly #files: ReadonlyMap<string, string>;
  readonly #programs = new Map<string, Program>();

  constructor(root: string) {
    const paths = existsSync(join(root, folder))
      ? readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      : [];
    const files = paths.filter((path) => /(?<!generated)\.(ts|lua)$/.test(path)).sort();
    this.#files = new Map(files.map((file) => [file, readFileSync(join(root, folder, file), "utf8")]));
  }

  /** The files by their paths below the folder of sources. */
  get files(): ReadonlyMap<string, string> {
    return this.#files;
  }

  /**
   * Functions by their name, wherever they are: `Class.method` or `name` of a module, `script: name` of a script, and `script:` for the part
   * of a script outside of its functions. Also values that are declared outside of all functions of a module.
   */
  find(owner: string): Found[] {
    const [, script, inScript] = /^([\w-]+): ?([\w.]*)$/.exec(owner) ?? [];
    if (script !== undefined) {
      const files = [...this.#files.keys()].filter((path) => path.endsWith(`lua/${script}.lua`));
      return files.flatMap((file) => namedIn(this.program(file), inScript ?? ""));
    }
    const names = owner.split(".");
    return [...this.#files]
      .filter(([file, text]) => file.endsWith(".ts") && names.every((name) => text.includes(name)))
      .flatMap(([file]) => namedIn(this.program(file), owner));
  }

  /** @param file below the root */
  textOf(file: string): string {
    return this.#files.get(file.slice(folder.length + 1)) ?? "";
  }

  /** @param file a module or script, below the folder of sources */
  program(file: string): Program {
    const program = this.#programs.get(file) ?? this.#read(file);
    this.#programs.set(file, program);
    return program;
  }

  #read(file: string): Program {
    const parts: Part[] = [];
    const text = this.#assemble(file, 0, parts);
    const tree = file.endsWith(".ts") ? parseTypeScript(file, text) : parseLua(text);
    return { text, tree, owners: ownersIn(tree), parts };
  }

  /** The text of a module, or of a script with its included files. */
  #assemble(file: string, start: number, parts: Part[]): string {
    const text = this.#files.get(file) as string;
    let [assembled, offset] = ["", 0];
    const add = (piece: string): void => {
      parts.push({ start: start + assembled.length, file: `${folder}/${file}`, offset });
      assembled += piece;
    };
    for (const { 0: line, 1: name = "", index } of text.matchAll(includeLine)) {
      add(text.slice(offset, index));
      assembled += this.#assemble(file.replace(/[^/]*$/, name), start + assembled.length, parts);
      offset = index + line.length;
    }
    add(text.slice(offset));
    return assembled;
  }
}

/** The functions, and the values that are declared outside of them. */
function ownersIn(tree: Node): readonly Node[] {
  const values = bodyOf(tree).filter(({ kind, declares }) => kind === "other" && declares);
  return [...descendants(tree).filter(({ kind }) => kind === "function"), ...values];
}

function namedIn(program: Program, name: string): Found[] {
  return program.owners.filter((node) => node.name === name).map((node) => ({ program, node }));
}

/** The file of a place of a program, and the place in that file. */
export function placeInFile(
  { parts }: Program,
  start: number,
): { readonly file: string; readonly offset: number } {
  const part = parts.findLast((one) => one.start <= start) as Part;
  return { file: part.file, offset: part.offset + start - part.start };
}
