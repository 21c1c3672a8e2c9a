import { formatDuration } from "../duration.ts";
import type { Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { heldMessage } from "../run/held.ts";
import { withEngine } from "../with-engine.ts";

/** The label of a lock that a person holds. */
const label = { held: "by hand" };
/** The least TTL of a lease, ms. */
const minForMs = 100;

export interface HoldOptions {
  readonly target: Target;
  readonly key: string;
  readonly owner: string;
  readonly forMs: number;
  readonly waitMs: number;
  readonly reason: string;
  readonly json: boolean;
  readonly voice: Output;
}

/** Holds a lock for a person, without a process, until its time has passed. */
export function hold({
  target,
  key,
  owner,
  forMs,
  waitMs,
  reason,
  json,
  voice: output,
}: HoldOptions): Promise<number> {
  return withEngine(target, owner, async ({ locks, driver }, signal) => {
    const { maxTtlMs } = driver.capabilities;
    if (forMs < minForMs || forMs > maxTtlMs) {
      throw new Exit(
        exitCodes.usage,
        `--for can be from ${formatDuration(minForMs)} to ${formatDuration(maxTtlMs)} with this engine, got ${formatDuration(forMs)}`,
      );
    }
    const lease = await locks
      .acquire(key, { ttlMs: forMs, waitMs, renew: false, owner, reason, labels: label, signal })
      .catch(async (error: unknown) => {
        if ((error as { code?: unknown }).code !== "wait-timeout") throw error;
        throw new Exit(exitCodes.notAcquired, await heldMessage(locks, { keys: [key], waitMs }), error);
      });
    await lease.extend(forMs); // a grant after a wait is shorter at first
    const { fencingToken, remainingMs } = lease.toJSON();
    lease.orphan();
    const until = new Date(Date.now() + remainingMs).toISOString();
    if (json) {
      process.stdout.write(
        `${JSON.stringify({ version: 1, key, owner, fencingToken, remainingMs, until })}\n`,
      );
    } else {
      output.info(`"${key}" is held by ${owner} until ${until}; holdfast hold --release ${key} ends it`);
    }
    return exitCodes.done;
  });
}

/** Releases a lock that the same person holds by hand. */
export function releaseHold({ target, key, owner, voice: output }: HoldOptions): Promise<number> {
  return withEngine(target, owner, async ({ locks }) => {
    const { holders } = await locks.inspect(key);
    const own = holders.find((holder) => holder.owner === owner && holder.labels?.["held"] === label.held);
    if (own?.fencingToken === undefined) {
      const [holder] = holders;
      if (holder === undefined) {
        throw new Exit(exitCodes.lost, `"${key}" is not held`);
      }
      throw new Exit(
        exitCodes.notAllowed,
        `"${key}" is held by ${holder.owner} and not by hand of ${owner}; see holdfast release --force`,
      );
    }
    await locks.admin.breakLock(key, { fencingToken: own.fencingToken, reason: "released by its holder" });
    output.info(`"${key}" is free`);
    return exitCodes.done;
  });
}
