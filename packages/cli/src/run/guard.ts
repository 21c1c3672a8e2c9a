import { spawn } from "node:child_process";

/** Kills a command where we die without a word: kill -9, out of memory. */
export interface OrphanGuard extends Disposable {
  /** From here on it is guarded: a process, or with a negative number a group of them. */
  readonly watch: (target: number) => void;
}

/** A line with whom to kill, and then the end of the pipe, which only we hold open: we are gone. */
const script = 'read -r target && { read -r _; kill -KILL "$target"; }';

/**
 * A shell in a session of its own that waits for our end. It is there before the command is, so that nothing is between the
 * command's start and its guarding but a write. Without a shell there is no guard.
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
    // Ended before its pipe is closed, so that it never kills who has the id next.
    [Symbol.dispose]: () => void shell.kill("SIGKILL"),
  };
}
