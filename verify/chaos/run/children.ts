import type { ChildProcess } from "node:child_process";

/** What must not outlive this process, however it ends: a frozen child would not notice that its parent has gone. */
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
