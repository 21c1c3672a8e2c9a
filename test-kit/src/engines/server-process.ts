import { spawn, type ChildProcess } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { endProcess, hasEnded, readOutput } from "../child-process.ts";
import { limitMs } from "../time-limits.ts";

const startWithinMs = limitMs(60_000);

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    child.kill("SIGKILL");
  }
});

/** A server in a folder of its own. */
export interface ServerProcess {
  readonly child: ChildProcess;
  /** Ends the server by its process id. */
  stop(): Promise<void>;
}

/** Starts a server and resolves when `isReady` does. Rejects with the server's output if the server ends before. */
export async function startServer(
  [program, ...args]: readonly [string, ...string[]],
  isReady: () => Promise<void>,
  options: { readonly uid?: number; readonly gid?: number; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<ServerProcess> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const output = readOutput(child);
  const deadline = performance.now() + startWithinMs;
  for (;;) {
    const failure = await isReady().catch((error: unknown) => ({ error }));
    if (failure === undefined) {
      return { child, stop: () => endProcess(child) };
    }
    if (hasEnded(child) || performance.now() > deadline) {
      await endProcess(child);
      throw new Error(`${program} did not start:\n${output()}`, { cause: failure.error });
    }
    await pause(20);
  }
}

/** Creates a folder for a server, calls `start` with the folder, and removes the folder if the start fails. */
export async function inFolder<T>(name: string, start: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), `holdfast-${name}-`));
  try {
    return await start(folder);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** The first of the programs that is installed, or undefined. Servers of Debian are often outside the PATH. */
export function installed(...programs: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return programs
    .flatMap((program) =>
      program.includes("/") ? [program] : folders.map((folder) => join(folder, program)),
    )
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
