import { fork, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { failed, formatMs, type Outcome } from "./outcome.ts";

/** What must not outlive this process. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    killGroup(child);
  }
});

/** Runs a program that says one outcome, with all that it starts, and survives whatever it does. */
export async function runInChildProcess(
  program: string,
  args: readonly string[],
  withinMs: number,
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-compare-"));
  // A group of its own, with the servers that it starts: a library that hangs cannot keep them.
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

/** The first that it says, or its silence, or its end. */
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

/** The pipes are read, or the child would stop at a full one; the last line is kept. */
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
    // All of the group is gone already.
  }
}
