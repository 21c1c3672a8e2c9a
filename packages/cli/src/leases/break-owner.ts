import { createInterface } from "node:readline/promises";

import type { BreakResult, Locks } from "holdfast";

import { defaultUser, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { allLocks } from "../inspect/list.ts";
import { errorMessage, type Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { printBreaks } from "./break.ts";

export interface BreakOwnerOptions {
  readonly target: Target;
  readonly owner: string;
  readonly reason: string;
  readonly isConfirmed: boolean;
  readonly json: boolean;
  readonly voice: Output;
}

type SeenGrant = Pick<BreakResult, "key" | "fencingToken">;

/** How many keys a question lists. */
const maxKeysShown = 10;
const maxGrants = 100_000;

/** Breaks every grant that the owner holds now, after a confirmation. A grant that the owner receives later stays in force. */
export function breakOwner({
  target,
  owner,
  reason,
  isConfirmed,
  json,
  voice,
}: BreakOwnerOptions): Promise<number> {
  return withEngine(target, undefined, async ({ locks }, signal) => {
    const grants = await grantsOf(locks, owner, signal);
    if (grants.length === 0) {
      throw new Exit(
        exitCodes.lost,
        `"${owner}" holds no lock; nothing was done. --owner is the whole name; holdfast ls --owner lists names that contain a text`,
      );
    }
    if (!isConfirmed) {
      await confirm(owner, grants);
    }
    const { results } = await locks.admin.breakOwner(owner, {
      reason,
      by: defaultUser(),
      grants,
      limit: maxGrants,
      signal,
      onResult: (result) => voice.info(`"${result.key}" ${describe(result)}`),
    });
    if (json) {
      printBreaks(results);
    }
    const count = results.filter(({ broken }) => broken === true).length;
    voice.info(`${count} of ${grants.length} grants of "${owner}" are broken`);
    return results.some(({ broken }) => broken === "unknown") ? exitCodes.unavailable : exitCodes.done;
  });
}

async function grantsOf(locks: Locks, owner: string, signal: AbortSignal): Promise<SeenGrant[]> {
  const grants: SeenGrant[] = [];
  for await (const { key, holders } of allLocks(locks, "")) {
    signal.throwIfAborted();
    for (const { fencingToken, ...holder } of holders) {
      if (holder.owner === owner && fencingToken !== undefined) grants.push({ key, fencingToken });
    }
  }
  return grants.slice(0, maxGrants);
}

/** @throws {Exit} the person does not confirm, or stdin is no terminal */
async function confirm(owner: string, grants: readonly SeenGrant[]): Promise<void> {
  const shown = grants.slice(0, maxKeysShown).map(({ key }) => `"${key}"`);
  const others = grants.length - shown.length;
  const keys = `${shown.join(", ")}${others > 0 ? ` and ${others} others` : ""}`;
  const what = `"${owner}" holds ${grants.length} ${grants.length === 1 ? "lock" : "locks"}: ${keys}`;
  if (!process.stdin.isTTY) {
    throw new Exit(exitCodes.usage, `${what}; say --yes to break them`);
  }
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    if ((await questions.question(`${what}. Break them? (yes/no) `)).trim() !== "yes") {
      throw new Exit(exitCodes.usage, "nothing was broken");
    }
  } finally {
    questions.close();
  }
}

function describe({ fencingToken, broken, error }: BreakResult): string {
  if (broken === true) {
    return `is broken: the grant with the fencing token ${fencingToken} has ended`;
  }
  const why = error === undefined ? "" : `: ${errorMessage(error)}`;
  return broken === false ? `was not broken${why || ": its grant had ended"}` : `may be broken${why}`;
}
