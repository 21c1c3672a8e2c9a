import { fromBytes } from "../bytes.ts";
import { outOfMemory, readOnly, ServerError, type Reply } from "../reply.ts";
import type { Command, Commands, Server } from "./command.ts";
import { hashes } from "./hashes.ts";
import { keys } from "./keys.ts";
import { servers } from "./servers.ts";
import { sortedSets } from "./sorted-sets.ts";
import { strings } from "./strings.ts";

const groups: readonly Commands[] = [strings, keys, hashes, sortedSets, servers];
const commands = new Map(groups.flatMap((group) => Object.entries(group)));

export interface CommandContext {
  /** Undefined: the command is in no script. */
  readonly script: ScriptState | undefined;
  readonly mayWrite: boolean;
  readonly isMemoryFull: boolean;
  readonly hasShards: boolean;
}

/** One run of a script. */
interface ScriptState {
  /** A write was admitted, with or without effect. From then on a server with full memory rejects no command of the script. */
  hasWritten: boolean;
}

/** Runs one command. @param argv the name and its arguments, as texts of bytes */
export function execute(server: Server, argv: readonly string[], context: CommandContext): Reply {
  const [name = "", ...args] = argv;
  const command = commands.get(name.toLowerCase());
  const refusal = context.script
    ? refusalInScript(command, argv.length, context)
    : refusalOutside(command, argv, context);
  if (!command || refusal !== undefined) {
    return new ServerError(refusal ?? unknownCommand(argv));
  }
  if (context.script && command.flags?.includes("write")) {
    context.script.hasWritten = true;
  }
  try {
    return command.run(server, ...args);
  } catch (error) {
    if (error instanceof ServerError) {
      return error;
    }
    throw error;
  }
}

function refusalInScript(
  command: Command | undefined,
  count: number,
  context: CommandContext,
): string | undefined {
  if (count === 0) {
    return "ERR Please specify at least one argument for this redis lib call";
  } else if (!command || isMissing(command, context)) {
    return "ERR Unknown Redis command called from script";
  } else if (!acceptsCount(command, count)) {
    return "ERR Wrong number of args calling Redis command from script";
  } else if (command.flags?.includes("outside")) {
    return "ERR This Redis command is not allowed from script";
  }
  return refusalOfWrite(command, context);
}

function refusalOutside(
  command: Command | undefined,
  argv: readonly string[],
  context: CommandContext,
): string | undefined {
  if (!command || isMissing(command, context)) {
    return unknownCommand(argv);
  } else if (!acceptsCount(command, argv.length)) {
    return `ERR wrong number of arguments for '${argv[0]?.toLowerCase()}' command`;
  }
  return refusalOfWrite(command, context);
}

function isMissing({ flags }: Command, { hasShards }: CommandContext): boolean {
  return flags?.includes("sharded") === true && !hasShards;
}

function acceptsCount({ arity }: Command, count: number): boolean {
  return arity < 0 ? count >= -arity : count === arity;
}

function refusalOfWrite(
  { flags }: Command,
  { mayWrite, isMemoryFull, script }: CommandContext,
): string | undefined {
  if (flags?.includes("write") && !mayWrite) {
    return readOnly;
  }
  return flags?.includes("memory") && isMemoryFull && script?.hasWritten !== true ? outOfMemory : undefined;
}

function unknownCommand([name = "", ...args]: readonly string[]): string {
  const given = args.map((arg) => `'${arg}' `).join("");
  return fromBytes(`ERR unknown command '${name}', with args beginning with: ${given}`);
}
