import { inspect } from "node:util";

/** Messages for people, on stderr. Stdout is for data, or for the command under the lock. */
export interface Output {
  /** Whether stderr is a terminal, where a status line can change. */
  readonly isTerminal: boolean;
  /** Whether messages are suppressed. */
  readonly isQuiet: boolean;
  info(text: string): void;
  /** Prints a message with `--verbose` only. */
  detail(text: string): void;
  /** Shows a status line. The next status line replaces it, and an empty text removes it. */
  status(text: string): void;
  /** An output with the same settings on another stream. */
  through(stream: MessageStream): Output;
}

export type MessageStream = Pick<NodeJS.WriteStream, "isTTY"> & {
  readonly columns?: number;
  write(text: string): unknown;
};

export interface OutputOptions {
  readonly quiet?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

export function output(
  { quiet = false, verbose = false }: OutputOptions,
  stream: MessageStream = process.stderr,
): Output {
  const isTerminal = stream.isTTY && !quiet;
  let hasStatus = false;
  const status = (text: string): void => {
    if (!isTerminal || (text === "" && !hasStatus)) {
      return;
    }
    hasStatus = text !== "";
    const room = Math.max(20, (stream.columns ?? 80) - 1);
    stream.write(`\r\u001b[K${text.slice(0, room)}`);
  };
  const write = (text: string): void => {
    status("");
    stream.write(`holdfast: ${text}\n`);
  };
  return {
    isTerminal,
    isQuiet: quiet,
    status,
    info: (text) => {
      if (!quiet) write(text);
    },
    detail: (text) => {
      if (verbose && !quiet) write(text);
    },
    through: (other) => output({ quiet, verbose }, other),
  };
}

/** The message of an error, without its stack. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : inspect(error);
}
