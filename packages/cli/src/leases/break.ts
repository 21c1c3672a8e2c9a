import { createInterface } from "node:readline/promises";

import type { BreakResult, Holder } from "holdfast";

import { defaultUser, type Engine, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { errorMessage, type Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";

export interface BreakOptions {
  readonly target: Target;
  readonly key: string;
  readonly fencingToken: bigint | undefined;
  readonly reason: string;
  readonly isConfirmed: boolean;
  readonly json: boolean;
  readonly voice: Output;
}

/**
 * Breaks the grant with that fencing token, and no other. The holder is notified, but may still work for a moment, so only a resource
 * that checks the token is safe.
 */
export function breakLock(options: BreakOptions): Promise<number> {
  const { key, reason, voice: output } = options;
  return withEngine(options.target, undefined, async (engine) => {
    const fencingToken = options.fencingToken ?? (await currentToken(engine, options));
    const results: BreakResult[] = [];
    const isBroken = await engine.locks.admin.breakLock(key, {
      fencingToken,
      reason,
      by: defaultUser(),
      onResult: (result) => results.push(result),
    });
    if (options.json) {
      printBreaks(results);
    }
    if (isBroken) {
      output.info(`"${key}" is broken: the grant with the fencing token ${fencingToken} has ended`);
      return exitCodes.done;
    }
    output.info(`"${key}" is no longer held with the fencing token ${fencingToken}; nothing was broken`);
    return exitCodes.lost;
  });
}

/** Prints the results of breaks as JSON. */
export function printBreaks(results: readonly BreakResult[]): void {
  const shown = results.map(({ error, ...result }) => ({
    ...result,
    fencingToken: result.fencingToken.toString(),
    ...(error !== undefined && { error: errorMessage(error) }),
  }));
  process.stdout.write(`${JSON.stringify({ version: 1, results: shown })}\n`);
}

/** The fencing token of the present holder, after a confirmation by a person or by `--yes`. */
async function currentToken({ locks }: Engine, { key, isConfirmed }: BreakOptions): Promise<bigint> {
  const { holders } = await locks.inspect(key);
  const [holder, ...others] = holders;
  if (holder === undefined) {
    throw new Exit(exitCodes.lost, `"${key}" is not held; nothing was done`);
  }
  if (others.length > 0 || holder.fencingToken === undefined) {
    const tokens = holders.map((one) => `${one.fencingToken ?? "unknown"} (${one.owner})`).join(", ");
    throw new Exit(exitCodes.usage, `"${key}" has these holders; say which one by --fence: ${tokens}`);
  }
  if (!isConfirmed && !(await confirmed(key, holder))) {
    throw new Exit(exitCodes.usage, "nothing was broken");
  }
  return holder.fencingToken;
}

async function confirmed(key: string, { owner, reason, fencingToken }: Holder): Promise<boolean> {
  const why = reason === undefined ? "" : `, because "${reason}"`;
  const what = `"${key}" is held by ${owner}${why}, with the fencing token ${fencingToken}`;
  if (!process.stdin.isTTY) {
    throw new Exit(exitCodes.usage, `${what}; say --fence ${fencingToken} to break it, or --yes`);
  }
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await questions.question(`${what}. Break it? (yes/no) `)).trim() === "yes";
  } finally {
    questions.close();
  }
}
