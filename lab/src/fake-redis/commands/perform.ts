import { fromBytes } from "../bytes.ts";
import { readOnly, ServerError, type Reply } from "../reply.ts";
import type { Commands, Server } from "./command.ts";
import { hashes } from "./hashes.ts";
import { keys } from "./keys.ts";
import { servers } from "./servers.ts";
import { sortedSets } from "./sorted-sets.ts";
import { strings } from "./strings.ts";

const groups: readonly Commands[] = [strings, keys, hashes, sortedSets, servers];
const commands = new Map(groups.flatMap((group) => Object.entries(group)));

export interface Circumstances {
  readonly inScript: boolean;
  readonly mayWrite: boolean;
  readonly hasShards: boolean;
}

/** Runs one command. @param words its name and what comes behind it, of bytes */
export function perform(server: Server, words: readonly string[], circumstances: Circumstances): Reply {
  const { inScript, mayWrite, hasShards } = circumstances;
  const [name = "", ...args] = words;
  const command = commands.get(name.toLowerCase());
  const flags = command?.flags ?? [];
  try {
    if (words.length === 0) {
      throw new ServerError("ERR Please specify at least one argument for this redis.call() call");
    } else if (!command || (flags.includes("sharded") && !hasShards)) {
      throw new ServerError(inScript ? "ERR Unknown Redis command called from script" : unknown(words));
    } else if (command.arity < 0 ? words.length < -command.arity : words.length !== command.arity) {
      throw new ServerError(inScript ? wrongArgumentsInScript : wrongArguments(name));
    } else if (inScript && flags.includes("outside")) {
      throw new ServerError("ERR This Redis command is not allowed from script");
    } else if (!mayWrite && flags.includes("write")) {
      throw new ServerError(readOnly);
    }
    return command.run(server, ...args);
  } catch (error) {
    if (error instanceof ServerError) {
      return error;
    }
    throw error;
  }
}

const wrongArgumentsInScript = "ERR Wrong number of args calling Redis command from script";

function wrongArguments(name: string): string {
  return `ERR wrong number of arguments for '${name.toLowerCase()}' command`;
}

function unknown([name = "", ...args]: readonly string[]): string {
  return fromBytes(
    `ERR unknown command '${name}', with args beginning with: ${args.map((arg) => `'${arg}' `).join("")}`,
  );
}
