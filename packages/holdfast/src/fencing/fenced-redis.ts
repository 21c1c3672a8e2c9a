import { checkOptionNames, checkText, invalidValue } from "../option-checks.ts";
import { tokenText, type FencedOutcome } from "./outcome.ts";
import { writeFencedScript } from "./scripts.generated.ts";

/** A client of ioredis, distinguished by its shape. */
export interface IoredisScripts {
  readonly defineCommand: unknown;
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** A cluster client of node-redis, distinguished by its shape. Version 4 sends its own EVAL to a random node. */
export interface NodeRedisClusterScripts {
  readonly nodeByAddress: unknown;
  sendCommand(firstKey: string, isReadonly: boolean, args: string[]): Promise<unknown>;
}

/** A client of node-redis, distinguished by its shape. */
export interface NodeRedisScripts {
  readonly evalSha: unknown;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

export type FencedRedisClient = IoredisScripts | NodeRedisScripts | NodeRedisClusterScripts;

export interface FencedWrite {
  /** The key of the fence: the largest token so far. It has no expiry. In a cluster it needs the hash tag of the written keys. */
  readonly fenceKey: string;
  readonly fencingToken: bigint;
  /**
   * The writes, in order: each a command and its arguments. A `keyPrefix` of ioredis is added to `fenceKey` and not to these keys,
   * which are written as Redis stores them.
   */
  readonly commands: readonly (readonly string[])[];
}

/**
 * Runs commands on Redis unless the fence has seen a larger fencing token. The server compares and writes in one step.
 *
 * An error of a command rejects the call; the fence and the commands before it then stay written. If the connection fails, the outcome
 * is unknown. Repeating the call is safe if its commands are.
 * @param client an ioredis client (5, 6) or a node-redis client (4, 5, 6), of a server or a cluster
 */
export async function fencedRedis(client: FencedRedisClient, write: FencedWrite): Promise<FencedOutcome> {
  checkOptionNames(write, ["fenceKey", "fencingToken", "commands"]);
  const key = checkText("fenceKey", write.fenceKey, 512);
  const args = [tokenText(write.fencingToken), ...write.commands.flatMap(counted)];
  return Number(await run(client, key, args)) === 1 ? "written" : "stale";
}

function run(client: FencedRedisClient, key: string, args: string[]): Promise<unknown> {
  const { source } = writeFencedScript;
  if (typeof client === "object" && client !== null) {
    if ("nodeByAddress" in client) {
      return client.sendCommand(key, false, ["EVAL", source, "1", key, ...args]);
    }
    if ("defineCommand" in client) {
      return client.call("EVAL", source, "1", key, ...args);
    }
    if ("evalSha" in client) {
      return client.eval(source, { keys: [key], arguments: args });
    }
  }
  throw new TypeError("Expected `client` to be an ioredis or node-redis client");
}

function counted(command: readonly string[]): string[] {
  if (command.length === 0) {
    throw invalidValue("commands", "lists with a command each", command);
  }
  return [String(command.length), ...command];
}
