import { fork, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { failed, formatMs, type Outcome } from "./outcome.ts";

/** The children that must end with this process. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    killGroup(child);
  }
});

/** Runs a program with its child processes, and returns the one outcome that it sends. The caller survives every failure of the program. */
export async function runInChildProcess(
  program: string,
  args: readonly string[],
  withinMs: number,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-compare-"));
  // The program and its servers form a process group of their own, so that a library that hangs can be killed with its servers.
  const child = fork(program, args, {
    detached: true,
    silent: true,
    env: { ...process.env, TMPDIR: folder },
  });
  running.add(child);
  try {
    return await outcomeOf(child, withinMs);
  } finally {
    killGroup(child);
    running.delete(child);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The first outcome that the child sends, or a timeout, or the end of the child. */
function outcomeOf(child: ChildProcess, withinMs: number): Promise<Outcome> {
  const lastLine = lastLineReader(child);
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(failed(`hung: no end in ${formatMs(withinMs)}`));
    }, withinMs);
    const end = (outcome: Outcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    child.once("message", (outcome: Outcome) => {
      end(outcome);
    });
    child.once("close", (code, signal) => {
      end(failed(`crashed: its process ended (${signal ?? `code ${code}`}) ${lastLine()}`.trim()));
    });
  });
}

/** Reads the pipes, because a full pipe would block the child, and keeps the last line. */
function lastLineReader(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-2_000);
    });
  }
  return () => text.trim().split("\n").at(-1)?.slice(0, 90) ?? "";
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended already.
  }
}
