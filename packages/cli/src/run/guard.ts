import { spawn } from "node:child_process";

/** Kills the command if this process is killed without warning, by kill -9 or for lack of memory. */
export interface OrphanGuard extends Disposable {
  /** Starts to guard a process, or with a negative number a process group. */
  readonly watch: (target: number) => void;
}

/** Reads the target, then waits for the end of the pipe. The pipe ends when this process has ended. */
const script = 'read -r target && { read -r _; kill -KILL "$target"; }';

/**
 * Starts a shell, in a session of its own, that waits for the end of this process. The shell starts before the command, so only one
 * write lies between the command's start and its guard. Without a shell there is no guard.
 */
export function startGuard(): OrphanGuard {
  if (process.platform === "win32") {
    return { watch: () => undefined, [Symbol.dispose]: () => undefined };
  }
  const shell = spawn("/bin/sh", ["-c", script], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
    env: {},
  });
  shell.on("error", () => undefined);
  shell.stdin.on("error", () => undefined);
  shell.unref();
  return {
    watch: (target) => void shell.stdin.write(`${target}\n`),
    // The shell is ended before its pipe closes, so it never kills a later process with the same id.
    [Symbol.dispose]: () => void shell.kill("SIGKILL"),
  };
}
