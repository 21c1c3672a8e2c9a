import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { withEngine } from "../with-engine.ts";
import { describeLock } from "./describe.ts";
import { describeProcesses } from "./describe-processes.ts";

/** Shows the holders of a lock, and its waiters in order. */
export function inspect(options: { target: Target; key: string; json: boolean }): Promise<number> {
  return withEngine(options.target, undefined, async ({ locks }) => {
    const { key, json } = options;
    const [state, list] = await Promise.all([
      locks.inspect(key),
      json ? undefined : locks.admin.processes({ key }).catch(() => undefined), // the state is shown without the directory as well
    ]);
    const text = json
      ? JSON.stringify({ version: 1, ...(state.toJSON() as object) })
      : [describeLock(state), ...describeProcesses(list?.processes ?? [])].join("\n");
    process.stdout.write(`${text}\n`);
    return exitCodes.done;
  });
}
