import type { Command } from "commander";

const shells = ["bash", "zsh", "fish", "powershell"];

/** Of the command line itself: only then what completes is loaded. */
function isCompletion(args: readonly string[]): boolean {
  return args[0] === "completion" || args[0] === "complete";
}

/** `completion <shell>` writes a script that asks `complete` while a line is typed. */
export async function completionCommand(program: Command, args: readonly string[]): Promise<void> {
  if (isCompletion(args) && !args.includes("--help") && !args.includes("-h")) {
    const { default: complete } = await import("@bomb.sh/tab/commander");
    complete(program, { completionCommandName: "completion" });
    return;
  }
  program
    .command("completion")
    .summary("write a completion script for a shell")
    .description("Writes a completion script for a shell; for bash: source <(holdfast completion bash)")
    .argument("<shell>", shells.join(", "));
}
