import { build } from "esbuild";

export interface Bundle {
  /** The program, an ES module. */
  readonly source: string;
  /** The folder in which the program's imports are resolved. */
  readonly folder: string;
  /** Conditions in addition to esbuild's. `@holdfast/source`: our own packages come from their sources. */
  readonly conditions?: readonly string[];
}

/** Bundles a program for browsers, as one ES module. Rejects if the program imports a module of Node. */
export async function bundleForBrowsers({ source, folder, conditions = [] }: Bundle): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: folder, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    conditions: [...conditions],
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}
