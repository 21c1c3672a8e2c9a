import { createInterface } from "node:readline";

/** One library, with at most one held lock. */
export interface WorkerLibrary {
  /** @returns null if the wait ended first */
  acquire(key: string, ttlMs: number, waitMs: number): Promise<WorkerGrant | null>;
  /** @returns false if the library reports that the lock was no longer held */
  release(): Promise<boolean>;
  /** Returns the new end of the validity, or null if the lock was lost. `null`: the library has no extension. */
  readonly extend: ((ttlMs: number) => Promise<number | null>) | null;
  close(): Promise<void>;
}

export interface WorkerGrant {
  /** The end of the validity by {@link monotonicMs}, if the library reports one. */
  readonly validUntil?: number;
  readonly fencingToken?: bigint;
}

/** Milliseconds of the monotonic clock that all processes of the machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Converts a time of `performance.now()`. */
export function fromPerformanceTime(performanceMs: number): number {
  return performanceMs - performance.now() + monotonicMs();
}

/** Answers the requests on standard input, one after another, until its end. */
export async function serve(library: WorkerLibrary): Promise<void> {
  writeLine("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const words = line.trim().split(" ");
    if (words[0] === "quit") {
      break;
    }
    writeLine(await reply(library, words));
  }
  await library.close();
}

async function reply(library: WorkerLibrary, [request = "", ...args]: readonly string[]): Promise<string> {
  const sent = monotonicMs();
  const line = (what: string, ...more: readonly string[]): string =>
    [what, sent.toFixed(3), monotonicMs().toFixed(3), ...more].join(" ");
  try {
    switch (request) {
      case "acquire": {
        const grant = await library.acquire(args[0] ?? "", Number(args[1]), Number(args[2]));
        return grant === null
          ? line("refused")
          : line("granted", timeText(grant.validUntil), String(grant.fencingToken ?? "-"));
      }
      case "release":
        return line("released", String(await library.release()));
      case "extend": {
        if (library.extend === null) {
          return "unsupported";
        }
        const validUntil = await library.extend(Number(args[0]));
        return validUntil === null ? line("refused") : line("extended", timeText(validUntil));
      }
      default:
        throw new Error(`unknown request: ${request}`);
    }
  } catch (error) {
    return line("error", String(error).replace(/\s+/g, " "));
  }
}

function timeText(validUntil: number | undefined): string {
  return validUntil === undefined ? "-" : validUntil.toFixed(3);
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
