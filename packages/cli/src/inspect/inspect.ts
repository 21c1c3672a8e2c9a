import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { withEngine } from "../with-engine.ts";
import { describeLock } from "./describe.ts";

/** Shows the holders of a lock, and its waiters in order. */
export function inspect(options: { target: Target; key: string; json: boolean }): Promise<number> {
  return withEngine(options.target, undefined, async ({ locks }) => {
    const state = await locks.inspect(options.key);
    const text = options.json
      ? JSON.stringify({ version: 1, ...(state.toJSON() as object) })
      : describeLock(state);
    process.stdout.write(`${text}\n`);
    return exitCodes.done;
  });
}
