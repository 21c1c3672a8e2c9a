import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";

/** What must not outlive this process, however it ends: a frozen child would not notice that its parent has gone. */
const children = new Set<ChildProcess>();
const folders = new Set<string>();

process.once("exit", () => {
  for (const child of children) {
    child.kill("SIGKILL");
  }
  for (const folder of folders) {
    rmSync(folder, { recursive: true, force: true });
  }
});

export function startChild(start: () => ChildProcess): ChildProcess {
  const child = start();
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Removed at the end. */
export function temporary(folder: string): string {
  folders.add(folder);
  return folder;
}
