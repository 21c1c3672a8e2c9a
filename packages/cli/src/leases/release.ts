import type { SerializedLease, Locks } from "holdfast";

import type { Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { describeBreak } from "../run/loss.ts";
import { withEngine } from "../with-engine.ts";
import { readLease } from "./lease-file.ts";

export interface ReleaseOptions {
  readonly target: Target;
  /** The expected key of the lease; undefined: any key. */
  readonly key: string | undefined;
  readonly voice: Output;
}

/** Releases a printed lease. */
export async function release({ target, key, voice: output }: ReleaseOptions): Promise<number> {
  const file = await readLease(
    key === undefined
      ? ""
      : `; to break the lock of another holder: holdfast release --force ${key} --reason TEXT`,
  );
  if (key !== undefined && key !== file.key) {
    throw new Exit(exitCodes.usage, `expected the lease of "${key}", got the lease of "${file.key}"`);
  }
  return withEngine(target, undefined, async ({ locks }) => {
    const lease = await locks.adopt(file, { renew: false }).catch(async (error: unknown) => {
      throw (error as { code?: unknown }).code === "lease-lost" ? await ended(locks, file, error) : error;
    });
    if (await lease.release()) {
      return exitCodes.done;
    }
    output.info(`the lease of "${file.key}" had been lost`);
    return exitCodes.lost;
  });
}

/** The error for a lease that is no longer in force. The engine keeps a record of a break only. */
async function ended(locks: Locks, { key, fencingToken }: SerializedLease, cause: unknown): Promise<Exit> {
  const broken = await describeBreak(locks, key, new Map([[key, BigInt(fencingToken)]]));
  const how = broken === undefined ? "it was released already, or it expired" : `it was ${broken}`;
  return new Exit(exitCodes.lost, `the lease of "${key}" is no longer in force: ${how}`, cause);
}
