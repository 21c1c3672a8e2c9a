import { Argument, type Command } from "commander";

import { shells, type Shell } from "./scripts.ts";

/**
 * Defines `completion <shell>`, which prints a script, and the hidden `complete -- <words...>`, which that script calls while a person
 * types.
 */
export function completionCommand(program: Command): void {
  program
    .command("completion")
    .summary("write a completion script for a shell")
    .description("Writes a completion script for a shell; for bash: source <(holdfast completion bash)")
    .addArgument(new Argument("<shell>").choices(Object.keys(shells)))
    .action((shell: Shell) => {
      process.stdout.write(shells[shell]);
    });
  program
    .command("complete", { hidden: true })
    .argument("[words...]")
    .action(async (words: string[]) => {
      const { printCandidates } = await import("./print.ts");
      await printCandidates(program, words);
    });
}
