import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../..", import.meta.url));

/** The command `holdfast` on the PATH of `shell`. */
export function commandLine(folder: string): Promise<void> {
  const path = join(root, "packages", "cli", "bin", "holdfast.cjs");
  return program(folder, "holdfast", `exec "${process.execPath}" "${path}" "$@"`);
}

/** A script on the PATH of `shell`. */
export async function program(folder: string, name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`);
  await chmod(join(folder, name), 0o755);
}

/** Runs lines of a shell in a folder, whose scripts are on the PATH. The first error ends them. */
export function shell(
  folder: string,
  script: string,
  env: Readonly<Record<string, string>>,
): {
  readonly child: ChildProcess;
  /** The first line of the output. */
  readonly line: Promise<string>;
  readonly code: Promise<number | null>;
} {
  const child = spawn("sh", ["-ec", script], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: "", PATH: `${folder}:${process.env["PATH"]}`, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = once(createInterface({ input: child.stdout }), "line").then(([text]) => text as string);
  const code = once(child, "exit").then(([value]) => value as number | null);
  line.catch(() => undefined);
  return { child, line, code };
}

/** The lines of shell on a page. */
export async function linesOf(page: string): Promise<string[]> {
  return (await blocksOf(page, "sh")).flatMap((text) => text.trim().split("\n"));
}

/** The blocks of a page in a language. */
export async function blocksOf(page: string, language: string): Promise<string[]> {
  const text = await readFile(join(root, page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block]) => block as string,
  );
}
