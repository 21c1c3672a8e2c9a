import { formatDuration } from "./duration.ts";
import { errorMessage } from "./output.ts";

/** The flags for the options of the library. */
const flags: Readonly<Record<string, string>> = {
  ttlMs: "--ttl",
  waitMs: "--wait",
  maxHoldMs: "--max-hold",
  limit: "--limit",
  owner: "--owner",
  reason: "--reason",
  fencingToken: "--fence",
  key: "the key",
  prefix: "the prefix",
};

/** The message of an error for people at a command line: with flags and variables instead of the library's options and headers. */
export function messageForPeople(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  if (code === "limit-mismatch") {
    return withLimit(errorMessage(error));
  }
  return isUnauthenticated(error) ? withToken(errorMessage(error)) : withFlags(errorMessage(error));
}

/** The service requires a token, or knows another one. */
function isUnauthenticated(error: unknown): boolean {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return cause?.code === "unauthenticated";
}

function withToken(message: string): string {
  const token = process.env["HOLDFAST_TOKEN"];
  return token === undefined || token === ""
    ? "the lock service requires a token; set HOLDFAST_TOKEN to the token"
    : `${message}; the token is that of HOLDFAST_TOKEN, or of the URL`;
}

function withLimit(message: string): string {
  return message.replace(
    /has the limit (\d+), which .*$/,
    "has the limit $1, which all its holders need: --limit $1",
  );
}

function withFlags(message: string): string {
  return message
    .replace(
      /^Expected `(\w+Ms)` to be an integer from (\d+) to (\d+), got (\d+) \(number\)$/,
      (_, name: string, ...bounds: string[]) => {
        const [least, most, given] = bounds.slice(0, 3).map((ms) => formatDuration(Number(ms)));
        return `expected ${flags[name] ?? name} to be from ${least} to ${most}, got ${given}`;
      },
    )
    .replace(/^Expected `(\w+)`/, (text, name: string) =>
      Object.hasOwn(flags, name) ? `expected ${flags[name]}` : text,
    );
}
