import { CommanderError } from "commander";

import { lastFailure } from "./engine.ts";
import { Exit, exitCodeOf, exits } from "./exit.ts";
import { program } from "./program.ts";
import { wordsOf } from "./output.ts";

declare const holdfastVersion: string;

process.on("uncaughtException", (error) => {
  process.stderr.write(`holdfast: ${error.stack ?? String(error)}\n`);
  // What runs under a lock that nobody renews any more is ended by those who listen to the exit.
  process.exit(exits.internal);
});

void main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  try {
    const holdfast = await program(holdfastVersion, args);
    for (const command of [holdfast, ...holdfast.commands]) {
      command.exitOverride();
    }
    await holdfast.parseAsync(args, { from: "user" });
  } catch (error) {
    process.exitCode = explain(error);
  }
}

function explain(error: unknown): number {
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exits.done : exits.usage;
  }
  const code = exitCodeOf(error);
  const isExpected = error instanceof Exit || code !== exits.internal;
  const words = isExpected ? wordsOf(error) : ((error as Error).stack ?? wordsOf(error));
  const because = code === exits.unavailable ? lastFailure() : undefined;
  process.stderr.write(`holdfast: ${words}${because === undefined ? "" : ` (${because})`}\n`);
  return code;
}
