import { CommanderError } from "commander";

import { lastFailure } from "./engine.ts";
import { Exit, exitCodeOf, exitCodes } from "./exit.ts";
import { messageForPeople } from "./messages.ts";
import { commandFirst } from "./command-first.ts";
import { isCommand, program } from "./program.ts";
import { errorMessage } from "./output.ts";

declare const holdfastVersion: string;

// A closed reader of stderr is no error: messages are lost, and the command under the lock goes on.
process.stderr.on("error", () => undefined);
process.on("uncaughtException", (error) => {
  process.stderr.write(`holdfast: ${error.stack ?? String(error)}\n`);
  // Listeners of the exit end the command that runs under a lock, because the lock is no longer renewed.
  process.exit(exitCodes.internal);
});

void main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  try {
    const words = commandFirst(args, isCommand);
    const holdfast = program(holdfastVersion, words);
    for (const command of [holdfast, ...holdfast.commands]) {
      command.exitOverride();
    }
    await holdfast.parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = explain(error);
  }
}

function explain(error: unknown): number {
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
  const code = exitCodeOf(error);
  const isExpected = error instanceof Exit || code !== exitCodes.internal;
  const message = isExpected ? messageForPeople(error) : ((error as Error).stack ?? errorMessage(error));
  const failure = code === exitCodes.unavailable ? lastFailure() : undefined;
  const because = failure && !message.includes(failure.reason) ? ` (${failure.node}: ${failure.reason})` : "";
  process.stderr.write(`holdfast: ${message}${because}\n`);
  return code;
}
