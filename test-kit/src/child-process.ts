import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

const stopWithinMs = 5_000;

/** Reads the server's output, so that the server never blocks on a full pipe. @returns the last part of the output */
export function readOutput(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-4_000);
    });
  }
  child.on("error", (error) => {
    text += error.message;
  });
  return () => text;
}

/** Ends a process by its id, also if it is frozen. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) {
    return;
  }
  const exited = once(child, "exit");
  const timeout = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  child.kill("SIGCONT");
  child.kill("SIGTERM");
  await exited;
  clearTimeout(timeout);
}

/** Kills a process by its id, also if it is frozen. */
export async function killProcess(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
}

export function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}
