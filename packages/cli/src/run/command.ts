import { spawn, spawnSync, type ChildProcess } from "node:child_process";

import { Exit, exitCodes } from "../exit.ts";
import { groupIsAlive } from "./group.ts";

/** How a command ended. */
export type ExitStatus = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** A command that runs, and everything that it started. */
export interface ChildCommand {
  /** Whom signals go to: its group, as a negative number, or only itself. */
  readonly target: number;
  readonly ended: Promise<ExitStatus>;
  /** Whether nothing of it runs any more, and its id may belong to somebody else. */
  readonly isGone: boolean;
  /** To all of it. Answers why it could not be sent, if so. */
  signal(name: NodeJS.Signals): string | undefined;
  /** Whether it left something behind. */
  isAlive(): Promise<boolean>;
  /** Nothing of it is touched from here on. */
  forget(): void;
}

export interface StartOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** In our own process group, with the terminal: what it starts is not ours to signal then. */
  readonly inForeground: boolean;
  /** Told at once whom signals go to: what the command does it may do before anything else of ours runs. */
  readonly began: (target: number) => void;
}

/**
 * Starts a command with our stdin, stdout and stderr, in a process group of its own.
 * @throws {Exit} 127 where there is no such program, 126 where it cannot be executed
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
    // No process groups: the tree of processes, as far as it is still known, and without a last word.
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
