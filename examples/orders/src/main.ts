import { helpText, parseOptions, UsageError } from "./options.ts";
import { run } from "./run.ts";

const exitCodes = {
  sound: 0,
  unsound: 1,
  usage: 2,
  unread: 141,
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
} as const;
const signals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

process.exitCode = await main(process.argv.slice(2));

/** @returns the exit code: 0 sound, 1 unsound or failed, 2 bad input, 128 + n after a signal */
async function main(args: string[]): Promise<number> {
  const stop = new AbortController();
  try {
    const options = parseOptions(args);
    if (options === "help") {
      process.stdout.write(helpText);
      return 0;
    }
    stopAtSignals(stop);
    return exitCodes[await run(options, process.stdout, stop.signal)];
  } catch (error) {
    return explain(error, stop.signal);
  }
}

/**
 * The first signal aborts the run, and every `finally` runs. A second signal, or a closed standard output, ends the process
 * immediately.
 */
function stopAtSignals(stop: AbortController): void {
  process.stdout.once("error", () => process.exit(exitCodes.unread));
  for (const name of signals) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(exitCodes[name]);
      stop.abort(name);
    });
  }
}

/** Prints the error. After a signal, the errors of interrupted calls are only its consequences and are not printed. */
function explain(error: unknown, stopped: AbortSignal): number {
  const interruptedBy = signals.find((name) => name === stopped.reason);
  if (interruptedBy) {
    process.stderr.write(`\nStopped by ${interruptedBy}; everything is cleaned up.\n`);
    return exitCodes[interruptedBy];
  }
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n(--help lists the options.)\n`);
    return exitCodes.usage;
  }
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return exitCodes.unsound;
}
