import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

export interface Options {
  /** The number of processes, or with the memory driver of workers inside this process. */
  readonly workers: number;
  readonly ordersFile: string;
  readonly engine: "memory" | "private redis if there is one" | { readonly url: string };
}

/** A mistake of the user. The program prints the message without a stack. */
export class UsageError extends Error {
  override name = "UsageError";
}

const maxWorkers = 64;
const defaultOrdersFile = fileURLToPath(new URL("../orders.ndjson", import.meta.url));

export const helpText: string = `Works through orders that take stock from one shared file: first without locks, then with them.

  --processes N   how many processes share the work, 1 to ${maxWorkers} (default 4)
  --orders FILE   the orders, one JSON object a line (default: orders.ndjson of the example)
  --redis URL     use this Redis server instead of a private one
  --memory        use the memory driver inside one process, even where redis-server is installed
  --help          show this

Ends with 0 when nothing was oversold with locks, 1 when something was, 2 on a bad option.
`;

/** @throws {UsageError} with the option, the expected and the actual value */
export function parseOptions(args: string[]): Options | "help" {
  const raw = parse(args);
  if (raw.help) return "help";
  if (raw.memory && raw.redis !== undefined) {
    throw new UsageError("Expected one of `--redis` and `--memory`, got both");
  }
  return {
    workers: parseWorkers(raw.processes),
    ordersFile: raw.orders ?? defaultOrdersFile,
    engine: raw.memory ? "memory" : parseRedis(raw.redis),
  };
}

/** A URL without its user and password, for messages. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/.*@/, "//***@");
}

interface RawOptions {
  processes?: string;
  orders?: string;
  redis?: string;
  memory?: boolean;
  help?: boolean;
}

function parse(args: string[]): RawOptions {
  try {
    const options = {
      processes: { type: "string" },
      orders: { type: "string" },
      redis: { type: "string" },
      memory: { type: "boolean" },
      help: { type: "boolean" },
    } as const;
    return parseArgs({ args, options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function parseWorkers(text = "4"): number {
  const workers = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (workers >= 1 && workers <= maxWorkers) return workers;
  throw new UsageError(`Expected \`--processes\` to be an integer from 1 to ${maxWorkers}, got "${text}"`);
}

function parseRedis(url: string | undefined): Options["engine"] {
  if (url === undefined) return "private redis if there is one";
  if (/^rediss?:/.test(url) && URL.canParse(url)) return { url };
  throw new UsageError(
    `Expected \`--redis\` to be a URL like redis://127.0.0.1:6379, got "${withoutPassword(url)}"`,
  );
}
