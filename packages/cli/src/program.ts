import { Command } from "commander";

import { benchCommand } from "./bench/define.ts";
import { completionCommand } from "./completion.ts";
import { doctorCommand } from "./doctor/define.ts";
import { acquireCommand, holdCommand, releaseCommand, renewCommand } from "./leases/define.ts";
import { inspectCommand, listCommand, waitCommand, watchCommand } from "./inspect/define.ts";
import { onceCommandDefinition, runCommandDefinition } from "./run/define.ts";
import { serveCommand } from "./serve/define.ts";
import { topCommand } from "./top/define.ts";

/** In the order of the help. */
const commands: Readonly<Record<string, (program: Command) => void>> = {
  run: runCommandDefinition,
  once: onceCommandDefinition,
  acquire: acquireCommand,
  renew: renewCommand,
  release: releaseCommand,
  hold: holdCommand,
  ls: listCommand,
  inspect: inspectCommand,
  wait: waitCommand,
  watch: watchCommand,
  top: topCommand,
  doctor: doctorCommand,
  bench: benchCommand,
  serve: serveCommand,
};

/** The commands by their flags: only the one that is called, where it is known, as each takes its time. */
export async function program(version: string, args: readonly string[]): Promise<Command> {
  const holdfast = new Command("holdfast")
    .description("Distributed locks for every shell: run a command under a lock, and see who holds what.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(--help lists the options.)");
  const [name = ""] = args;
  const commandName = Object.hasOwn(commands, name) ? [commands[name]] : Object.values(commands);
  for (const define of commandName) {
    define?.(holdfast);
  }
  if (commandName.length > 1) {
    await completionCommand(holdfast, args);
  }
  return holdfast;
}
