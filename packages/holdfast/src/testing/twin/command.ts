import { ServerError } from "./server-error.ts";
import type { Server } from "./state.ts";

const noConfigPermission = "NOPERM this user has no permissions to run the 'config|get' command";

/** Answers the plain commands that Holdfast sends beside its scripts, and refuses all others as a server that has none of them. */
export function command(
  server: Server,
  mayConfigure: boolean,
  name: string,
  args: readonly string[],
): readonly string[] {
  const [subcommand, ...patterns] = args;
  if (name.toLowerCase() !== "config" || subcommand?.toLowerCase() !== "get") {
    const given = args.map((arg) => `'${arg}' `).join("");
    throw new ServerError(`ERR unknown command '${name}', with args beginning with: ${given}`);
  } else if (!mayConfigure) {
    throw new ServerError(noConfigPermission);
  }
  const asked = patterns.find((pattern) => pattern.toLowerCase() === "appendfsync");
  return asked === undefined ? [] : [asked, server.standing.isDurable ? "always" : "everysec"];
}
