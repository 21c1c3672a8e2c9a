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

/** The commands that are defined only together with all others. */
const otherCommands = ["completion", "complete", "help"];

export function isCommand(name: string): boolean {
  return Object.hasOwn(commands, name) || otherCommands.includes(name);
}

const afterHelp = `
Environment:
  HOLDFAST_URL        the engine or the service, for instance redis://127.0.0.1:6379
  HOLDFAST_URL_FILE   a file that contains the URL
  HOLDFAST_TOKEN      the token of a service
  HOLDFAST_LEASE      the lease for renew and release
  serve --help lists the variables of the service

Exit codes:
  run and once return the code of their command, and 128 + n after signal n. Others:
  64 invalid arguments   69 engine unreachable   70 internal error   75 lock not acquired   77 access denied
  78 configuration   79 lease lost   126, 127 command not executable, not found   1, 2 findings of doctor`;

/** Defines the commands. If the called command is known, only that one is defined, because each definition takes time. */
export function program(version: string, args: readonly string[]): Command {
  const holdfast = new Command("holdfast")
    .description(
      "Distributed locks for every shell: run a command under a lock, and show the holders of locks.",
    )
    .version(version)
    .enablePositionalOptions()
    .addHelpText("after", afterHelp)
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "holdfast: ")) })
    .showHelpAfterError("(--help lists the commands and options.)");
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
