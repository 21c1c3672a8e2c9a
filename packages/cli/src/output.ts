import { inspect } from "node:util";

/** What we say to people. It goes to stderr, as stdout belongs to data, or to the command that we run. */
export interface Output {
  /** Whether a person may look at a line that changes. */
  readonly isTerminal: boolean;
  info(text: string): void;
  /** Only with `--verbose`. */
  detail(text: string): void;
  /** A line that the next one replaces; an empty one removes it. */
  status(text: string): void;
}

export interface OutputOptions {
  readonly quiet?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

export function output(
  { quiet = false, verbose = false }: OutputOptions,
  stream: NodeJS.WriteStream = process.stderr,
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
    status,
    info: (text) => {
      if (!quiet) write(text);
    },
    detail: (text) => {
      if (verbose && !quiet) write(text);
    },
  };
}

/** The words of an error, without its stack. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : inspect(error);
}
