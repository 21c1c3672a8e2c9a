import { Command } from "commander";

import { benchCommand } from "./bench/define.ts";
import { consoleCommand } from "./console/define.ts";
import { completionCommand } from "./completion/define.ts";
import { doctorCommand } from "./doctor/define.ts";
import { acquireCommand, holdCommand, releaseCommand, renewCommand } from "./leases/define.ts";
import { auditCommand, inspectCommand, listCommand, waitCommand, watchCommand } from "./inspect/define.ts";
import { ownersCommand } from "./owners/define.ts";
import { onceCommandDefinition, runCommandDefinition } from "./run/define.ts";
import { serveCommand } from "./serve/define.ts";
import { topCommand } from "./top/define.ts";

/** The commands, in the order of the help. */
const commands: Readonly<Record<string, (program: Command) => void>> = {
  run: runCommandDefinition,
  once: onceCommandDefinition,
  acquire: acquireCommand,
  renew: renewCommand,
  release: releaseCommand,
  hold: holdCommand,
  ls: listCommand,
  inspect: inspectCommand,
  audit: auditCommand,
  wait: waitCommand,
  watch: watchCommand,
  top: topCommand,
  owners: ownersCommand,
  doctor: doctorCommand,
  bench: benchCommand,
  serve: serveCommand,
  console: consoleCommand,
};

/** Defines the commands. If the called command is known, only that one is defined, because each definition takes time. */
export function program(version: string, args: readonly string[]): Command {
  const holdfast = new Command("holdfast")
    .description(
      "Distributed locks for every shell: run a command under a lock, and show the holders of locks.",
    )
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(--help lists the options.)");
  const [name = ""] = args;
  const commandName = Object.hasOwn(commands, name) ? [commands[name]] : Object.values(commands);
  for (const define of commandName) {
    define?.(holdfast);
  }
  if (commandName.length > 1) {
    completionCommand(holdfast);
  }
  return holdfast;
}
