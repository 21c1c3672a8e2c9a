import type { Script } from "../../src/drivers/redis/script.ts";
import * as scripts from "../../src/drivers/redis/scripts.generated.ts";

/** The commands that our scripts may run, in lower case, read from their sources. */
export function commandsOfScripts(all: readonly Script[] = Object.values(scripts)): Set<string> {
  const commands = new Set<string>();
  for (const { name, source } of all) {
    const calls = source.match(/redis\.p?call\b/g)?.length ?? 0;
    const literal = Array.from(source.matchAll(/redis\.p?call\(([^,()]*)[,)]/g), ([, first = ""]) =>
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

/** Those that the adapters send outside of scripts, unless somebody reads `nodes()` of a quorum or its standing: `config|get`. */
export const sentByUs: readonly string[] = ["evalsha", "eval", "subscribe", "ssubscribe"];
