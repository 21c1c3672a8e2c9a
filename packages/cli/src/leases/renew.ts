import { formatDuration } from "../duration.ts";
import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { readLease, formatLease } from "./lease-file.ts";

export interface RenewOptions {
  readonly target: Target;
  readonly ttlMs: number | undefined;
  readonly json: boolean;
  readonly voice: Output;
}

/** Extends a printed lease. */
export async function renew({ target, ttlMs, json, voice: output }: RenewOptions): Promise<number> {
  const file = await readLease();
  return withEngine(target, undefined, async ({ locks }) => {
    const lease = await locks.adopt(file, { renew: false, ...(ttlMs !== undefined && { ttlMs }) });
    try {
      await lease.extend(ttlMs);
      const remaining = formatDuration(lease.remainingMs());
      const text = formatLease(lease, "json");
      if (json) process.stdout.write(`${text}\n`);
      else output.detail(`"${lease.key}" is valid for ${remaining}`);
      return exitCodes.done;
    } catch (error) {
      lease.orphan(); // not released at the end, because the script still holds the lease
      throw error;
    }
  });
}
