import { formatDuration } from "../duration.ts";
import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";

export interface WaitOptions {
  readonly target: Target;
  readonly key: string;
  readonly waitMs: number;
  readonly heldExit: number;
  readonly voice: Output;
}

/** Waits until a lock is free, without acquiring it. Another client may acquire the lock at any moment after. */
export function wait({ target, key, waitMs, heldExit, voice: output }: WaitOptions): Promise<number> {
  return withEngine(target, undefined, async ({ locks }, interrupted) => {
    const isFree = async (): Promise<boolean> => (await locks.inspect(key)).holders.length === 0;
    if (await isFree()) {
      return exitCodes.done;
    }
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(waitMs, 2_147_483_647));
    const signal = AbortSignal.any([interrupted, late.signal]);
    try {
      for await (const { state } of locks.admin.watch(key, { signal })) {
        if (state.holders.length === 0) {
          return exitCodes.done;
        }
      }
    } finally {
      clearTimeout(timer);
    }
    output.info(`"${key}" is held still, after ${formatDuration(waitMs)}`);
    return heldExit;
  });
}
