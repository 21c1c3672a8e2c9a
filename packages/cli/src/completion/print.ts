import type { Command } from "commander";

import type { Target } from "../engine.ts";
import { completionOf, type Candidate } from "./candidates.ts";

/** The default limit for the engine's reply, ms, because a person has pressed Tab. */
const keysLimitMs = 300;
const maxKeys = 200;

/**
 * Prints the completions of the last word: a line of text, tab and description for each, then a line that begins with a colon. That line
 * is `:candidates`, `:files`, or `:command N` for a command that begins at the word with that index. Errors are silent.
 */
export async function printCandidates(program: Command, words: readonly string[]): Promise<void> {
  const completion = completionOf(program, words);
  if (completion.kind === "command") {
    write([], `:command ${completion.start}`);
  } else if (completion.kind === "files") {
    write([], ":files");
  } else if (completion.kind === "candidates") {
    write(completion.candidates, ":candidates");
  } else {
    const { prefix } = completion;
    const current = (words.at(-1) ?? "").slice(prefix.length);
    const keys = await keysOf(targetOf(words), current);
    write(
      keys.map((key) => ({ text: `${prefix}${key}`, description: "" })),
      ":candidates",
    );
  }
}

/** Exits at once. A connection that is still being opened would keep the process alive. */
function write(candidates: readonly Candidate[], directive: string): void {
  const lines = candidates.map(({ text, description }) => `${text}\t${description}\n`);
  process.stdout.write(`${lines.join("")}${directive}\n`, () => process.exit(0));
}

/** The engine that the words before the current one name. */
function targetOf(words: readonly string[]): Target {
  const valueOf = (...flags: string[]): string | undefined => {
    const index = words.findIndex((word) => flags.includes(word.replace(/=.*$/s, "")));
    const word = words[index];
    return word?.includes("=") ? word.slice(word.indexOf("=") + 1) : words[index + 1];
  };
  const isNamed = (flag: string): boolean =>
    words.some((word) => word === flag || word.startsWith(`${flag}=`));
  return {
    url: isNamed("--url") || isNamed("-u") ? valueOf("--url", "-u") : undefined,
    urlFile: isNamed("--url-file") ? valueOf("--url-file") : undefined,
  };
}

/** The keys that the engine lists within the limit; none without an engine. Keys with control characters are omitted. */
async function keysOf(target: Target, prefix: string): Promise<string[]> {
  const limitMs = Number(process.env["HOLDFAST_COMPLETION_MS"]) || keysLimitMs;
  const keys = new Set<string>();
  const listing = (async () => {
    const { openEngine } = await import("../engine.ts");
    const { locks } = await openEngine(target);
    let cursor: string | undefined;
    do {
      const page = await locks.admin.list({ prefix, limit: maxKeys, cursor });
      for (const { key } of page.locks) keys.add(key);
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && keys.size < maxKeys);
  })().catch(() => undefined);
  await Promise.race([listing, new Promise((resolve) => setTimeout(resolve, limitMs))]);
  // oxlint-disable-next-line no-control-regex -- a line break in a key would be two candidates
  return [...keys].filter((key) => !/[\u0000-\u001f\u007f]/.test(key)).sort();
}
