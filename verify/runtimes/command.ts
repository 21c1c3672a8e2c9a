import { execFile } from "node:child_process";

export interface CommandResult {
  /** Null if the command was killed, because it ran too long. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly folder: string;
  /** After this time in ms the command is killed. Default: 10 min. */
  readonly withinMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command, and returns its result whether or not it succeeded. */
export function tryCommand(
  command: string,
  args: readonly string[],
  { folder, withinMs = 600_000, env = {} }: CommandOptions,
): Promise<CommandResult> {
  const { NODE_OPTIONS: _ours, ...inherited } = process.env;
  const options = {
    cwd: folder,
    timeout: withinMs,
    killSignal: "SIGKILL",
    maxBuffer: 100_000_000,
    env: { ...inherited, ...env },
  } as const;
  return new Promise((resolve, reject) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      if (typeof error?.code === "string") {
        reject(error); // the command was not found
      } else {
        resolve({ code: error === null ? 0 : (error.code ?? null), stdout, stderr });
      }
    });
  });
}

/** @throws {Error} with the last lines of the output if the command fails */
export async function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(command, args, options);
  if (code !== 0) {
    const output = `${stdout}\n${stderr}`.trim().split("\n").slice(-5).join("\n");
    throw new Error(`${command} ${args.join(" ")} failed:\n${output}`);
  }
  return stdout;
}
