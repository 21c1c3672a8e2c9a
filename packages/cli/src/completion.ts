import type { Command } from "commander";

const shells = ["bash", "zsh", "fish", "powershell"];

/** Whether the arguments request a completion. The completion code is loaded only then. */
function isCompletion(args: readonly string[]): boolean {
  return args[0] === "completion" || args[0] === "complete";
}

/** `completion <shell>` prints a script that calls `complete` while a person types. */
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
