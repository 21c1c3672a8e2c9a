import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";

import { runNode, type Ended } from "./child.ts";
import { mutatedFiles, type Mutant } from "./mutant.ts";
import { Sources } from "./sources.ts";

const compileMs = 120_000;

/** The mutant does not compile. */
export class CompileError extends Error {}

/** The folders of copies, as `mkdtemp` made them. They are removed before this process ends, and no other folder is. */
const open = new Set<string>();

/** A copy of the repository for mutants. It uses the third-party packages of the original. */
export class WorkingCopy implements Disposable {
  readonly #home: string;
  readonly #folder: string;
  readonly #temporary: string;
  readonly #sources: Sources;

  constructor(root: string) {
    this.#home = mkdtempSync(join(realpathSync(tmpdir()), "holdfast-mutants-"));
    chmodSync(this.#home, 0o711); // PostgreSQL runs as another user, with its data in this folder
    open.add(this.#home);
    this.#folder = join(this.#home, "copy");
    this.#temporary = join(this.#home, "tmp");
    mkdirSync(this.#temporary);
    copySources(root, this.#folder);
    linkPackages(root, this.#folder);
    this.#sources = new Sources(this.#folder);
  }

  /** Runs a program of Node in the copy. */
  run(args: readonly string[], timeoutMs: number): Promise<Ended> {
    return runNode(args, { folder: this.#folder, temporary: this.#temporary, timeoutMs });
  }

  /** The path of a new file for the result of a run. */
  freshFile(): string {
    const file = join(this.#temporary, "result.json");
    rmSync(file, { force: true });
    return file;
  }

  /** Applies a mutant, builds the copy, runs an action, and restores the copy. */
  async withMutant<T>(mutant: Mutant, action: () => Promise<T>): Promise<T> {
    const changed = mutatedFiles(this.#sources, mutant);
    const originals = [...changed.keys()].map((path) => [path, this.#sources.textOf(path)] as const);
    try {
      await this.#write(changed);
      await this.build(`The mutant ${mutant.name}`, !mutant.changes.some((change) => "owner" in change));
      return await action();
    } finally {
      await this.#write(originals);
    }
  }

  /**
   * @param checksTypes whether errors of types count: a mutant with an aim may leave a variable unused
   * @throws {CompileError} if `target` does not compile
   */
  async build(target: string, checksTypes: boolean): Promise<void> {
    const options = checksTypes ? [] : ["--noCheck"];
    await this.#runOrThrow(
      ["node_modules/typescript/bin/tsc", "-b", "packages/holdfast", ...options],
      target,
    );
  }

  [Symbol.dispose](): void {
    remove(this.#home);
  }

  async #runOrThrow(args: readonly string[], step: string): Promise<void> {
    const { code, output } = await this.run(args, compileMs);
    if (code !== 0) {
      throw new CompileError(`${step} does not compile:\n${output.slice(0, 2_000)}`);
    }
  }

  async #write(files: Iterable<readonly [path: string, text: string]>): Promise<void> {
    const texts = new Map(files);
    for (const [path, text] of texts) {
      writeFileSync(join(this.#folder, path), text);
    }
    if ([...texts.keys()].some((path) => path.endsWith(".lua"))) {
      await this.#runOrThrow(["scripts/build-lua.mjs"], "A script");
    }
  }
}

/** Removes all copies of this process. */
export function removeCopies(): void {
  for (const home of open) {
    remove(home);
  }
}

function remove(home: string): void {
  if (open.has(home)) {
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    open.delete(home);
  }
}

function copySources(root: string, folder: string): void {
  const left = new Set([".git", "node_modules", "results"]);
  cpSync(root, folder, { recursive: true, filter: (path) => !left.has(basename(path)) });
}

/**
 * Links the third-party packages, while packages of the repository belong to the copy. Each package folder is a new folder with a link for
 * each package. So a program that removes such a folder does not affect the original.
 */
function linkPackages(root: string, folder: string): void {
  for (const own of [".", "bench", "test-kit", "verify", "packages/holdfast"]) {
    const packages = join(own, "node_modules");
    if (existsSync(join(root, packages))) {
      linkEach(root, folder, packages);
    }
  }
}

function linkEach(root: string, folder: string, under: string): void {
  mkdirSync(join(folder, under));
  for (const { name } of readdirSync(join(root, under), { withFileTypes: true })) {
    const path = join(under, name);
    const target = realpathSync(join(root, path));
    const linkPath = relative(root, target);
    if (name.startsWith("@")) {
      linkEach(root, folder, path);
    } else if (!linkPath.startsWith("..") && !linkPath.includes("node_modules")) {
      symlinkSync(join(folder, linkPath), join(folder, path)); // a package of the repository
    } else if (!name.startsWith(".") || name === ".bin") {
      symlinkSync(target, join(folder, path));
    }
  }
}
