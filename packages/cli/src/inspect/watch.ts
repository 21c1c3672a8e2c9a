import type { LockEvent } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { withEngine } from "../with-engine.ts";
import { sanitizeForTerminal } from "./table.ts";

export interface WatchOptions {
  readonly target: Target;
  readonly watched: string | { readonly prefix: string };
  readonly json: boolean;
}

/** Prints the held locks, and then their observed changes, one line each. A change between two polls of the engine may be missed. */
export function watch({ target, watched, json }: WatchOptions): Promise<number> {
  return withEngine(target, undefined, async ({ locks }, signal) => {
    for await (const event of locks.admin.watch(watched, { signal })) {
      process.stdout.write(`${json ? asJson(event) : asText(event)}\n`);
    }
    return exitCodes.done;
  });
}

function asJson({ type, key, state }: LockEvent): string {
  return JSON.stringify({ version: 1, at: new Date().toISOString(), type, key, state });
}

function asText({ type, key, state }: LockEvent): string {
  const { holders, waiterCount, remainingMs } = state;
  const held = holders.map(({ owner, fencingToken }) => `${owner} (${fencingToken ?? "unknown"})`).join(", ");
  const change =
    held === ""
      ? "free"
      : `held by ${held}${remainingMs === null ? "" : `, ${formatDuration(remainingMs)} left`}`;
  const waiting = waiterCount === 0 ? "" : `, ${waiterCount} waiting`;
  return sanitizeForTerminal(`${new Date().toISOString()}  ${type.padEnd(8)}  ${key}  ${change}${waiting}`);
}
