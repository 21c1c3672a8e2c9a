import { promises } from "node:fs";

/** Whether a process of a group runs. Ended processes without a reaper, as in containers without an init, do not count. */
export async function groupIsAlive(group: number): Promise<boolean> {
  try {
    process.kill(-group, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  if (process.platform !== "linux") {
    return true;
  }
  for (const name of await promises.readdir("/proc").catch(() => [])) {
    if (/^\d+$/.test(name) && (await isRunningIn(group, name))) {
      return true;
    }
  }
  return false;
}

async function isRunningIn(group: number, pid: string): Promise<boolean> {
  const stat = await promises.readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The name is in brackets and may contain any character. State, parent and group follow after the name.
  const [state = "Z", , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(of) === group && state !== "Z" && state !== "X";
}
