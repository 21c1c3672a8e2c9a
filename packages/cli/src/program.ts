import { Command } from "commander";

import { defineBench } from "./bench/define.ts";
import { defineCompletion } from "./completion.ts";
import { defineDoctor } from "./doctor/define.ts";
import { defineAcquire, defineHold, defineRelease, defineRenew } from "./leases/define.ts";
import { defineInspect, defineList, defineWait, defineWatch } from "./inspect/define.ts";
import { defineOnce, defineRun } from "./run/define.ts";
import { defineServe } from "./serve/define.ts";
import { defineTop } from "./top/define.ts";

/** In the order of the help. */
const commands: Readonly<Record<string, (program: Command) => void>> = {
  run: defineRun,
  once: defineOnce,
  acquire: defineAcquire,
  renew: defineRenew,
  release: defineRelease,
  hold: defineHold,
  ls: defineList,
  inspect: defineInspect,
  wait: defineWait,
  watch: defineWatch,
  top: defineTop,
  doctor: defineDoctor,
  bench: defineBench,
  serve: defineServe,
};

/** The commands by their flags: only the one that is called, where it is known, as each takes its time. */
export async function program(version: string, args: readonly string[]): Promise<Command> {
  const holdfast = new Command("holdfast")
    .description("Distributed locks for every shell: run a command under a lock, and see who holds what.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(--help lists the options.)");
  const [name = ""] = args;
  const called = Object.hasOwn(commands, name) ? [commands[name]] : Object.values(commands);
  for (const define of called) {
    define?.(holdfast);
  }
  if (called.length > 1) {
    await defineCompletion(holdfast, args);
  }
  return holdfast;
}
