import type { Script } from "../../src/drivers/redis/protocol/script.ts";
import * as scripts from "../../src/drivers/redis/protocol/scripts.generated.ts";

/** The alias of `redis.call` or `redis.pcall` in scripts that run with either. */
const alias = /^local call = redis\.p?call$/gm;

/** The commands that our scripts may run, in lower case, read from their sources. */
export function commandsOfScripts(allScripts: readonly Script[] = Object.values(scripts)): Set<string> {
  const commands = new Set<string>();
  for (const { name, source } of allScripts) {
    const text = source.replaceAll(alias, "");
    const calls = text.match(/redis\.p?call\b|\bcall\b/g)?.length ?? 0;
    const literal = Array.from(text.matchAll(/(?:redis\.p?|\b)call\(([^,()]*)[,)]/g), ([, first = ""]) =>
      Array.from(first.matchAll(/'([A-Z]+)'/g), ([, command = ""]) => command.toLowerCase()),
    );
    if (calls !== literal.length || literal.some((names) => names.length === 0)) {
      throw new Error(`${name} runs a command whose name is not written out`);
    }
    for (const command of literal.flat()) {
      commands.add(command);
    }
  }
  return commands;
}

/** The commands that the adapters send outside scripts. Only `nodes()` of a quorum and its health also need `config|get`. */
export const ownCommands: readonly string[] = ["evalsha", "eval", "subscribe", "ssubscribe"];
