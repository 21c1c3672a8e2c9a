import type { ChildProcess } from "node:child_process";

/** Children that must end with this process, because a frozen child would not notice the end of its parent. */
const children = new Set<ChildProcess>();

process.once("exit", () => {
  for (const child of children) {
    child.kill("SIGKILL");
  }
});

export function startChild(start: () => ChildProcess): ChildProcess {
  const child = start();
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}
