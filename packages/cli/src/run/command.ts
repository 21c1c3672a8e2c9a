import { spawn, spawnSync, type ChildProcess } from "node:child_process";

import { Exit, exitCodes } from "../exit.ts";
import { groupIsAlive } from "./group.ts";

/** The exit code of a command, or the signal that ended the command. */
export type ExitStatus = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** A running command, with all its child processes. */
export interface ChildCommand {
  /** The target of signals: the process group as a negative number, or the process alone. */
  readonly target: number;
  readonly ended: Promise<ExitStatus>;
  /** Whether all its processes have ended. Then the id may belong to another process. */
  readonly isGone: boolean;
  /** Sends a signal to all its processes. @returns the reason of a failure */
  signal(name: NodeJS.Signals): string | undefined;
  /** Whether a process of the group is still alive. */
  isAlive(): Promise<boolean>;
  /** Sends no more signals to the group from now on. */
  forget(): void;
}

export interface StartOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Runs in the own process group, with the terminal. Then child processes of the command get no signals. */
  readonly inForeground: boolean;
  /** Called at the start with the target of signals, before the command can act. */
  readonly began: (target: number) => void;
}

/**
 * Starts a command with this process's stdin, stdout and stderr, in a process group of its own.
 * @throws {Exit} 127 if the program does not exist, 126 if it cannot be executed
 */
export async function startCommand({
  program,
  args,
  env,
  inForeground,
  began,
}: StartOptions): Promise<ChildCommand> {
  const child = spawn(program, args, { stdio: "inherit", env, detached: !inForeground });
  const target = (child.pid ?? 0) * (inForeground ? 1 : -1);
  if (child.pid !== undefined) began(target);
  const ended = exitStatusOf(child);
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error: NodeJS.ErrnoException) => {
      reject(notStarted(program, error));
    });
  });
  return running(target, ended, inForeground);
}

function running(target: number, ended: Promise<ExitStatus>, inForeground: boolean): ChildCommand {
  let isGone = false;
  if (inForeground) {
    void ended.then(() => {
      isGone = true;
    });
  }
  return {
    target,
    ended,
    get isGone() {
      return isGone;
    },
    signal: (name) => (isGone ? undefined : send(target, name)),
    isAlive: async () => !isGone && !inForeground && (await groupIsAlive(-target)),
    forget: () => {
      isGone = true;
    },
  };
}

function exitStatusOf(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      resolve(signal === null ? { code: code ?? exitCodes.internal } : { signal });
    });
  });
}

function notStarted(program: string, error: NodeJS.ErrnoException): Exit {
  return error.code === "ENOENT"
    ? new Exit(exitCodes.notFound, `${program}: not found`, error)
    : new Exit(
        exitCodes.cannotExecute,
        `${program}: cannot be executed (${error.code ?? error.message})`,
        error,
      );
}

function send(target: number, name: NodeJS.Signals): string | undefined {
  if (process.platform === "win32") {
    // Windows has no process groups, so the known tree of processes is killed.
    spawnSync("taskkill", ["/pid", String(Math.abs(target)), "/T", "/F"], { stdio: "ignore" });
    return undefined;
  }
  try {
    process.kill(target, name);
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ESRCH" ? undefined : (code ?? message);
  }
}
