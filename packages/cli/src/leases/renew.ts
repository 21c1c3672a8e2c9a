import { shown } from "../duration.ts";
import type { Target } from "../engine.ts";
import { exits } from "../exit.ts";
import type { Voice } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { readLease, written } from "./lease-file.ts";

export interface RenewOptions {
  readonly target: Target;
  readonly ttlMs: number | undefined;
  readonly json: boolean;
  readonly voice: Voice;
}

/** Prolongs a lease that was written down. */
export async function renew({ target, ttlMs, json, voice }: RenewOptions): Promise<number> {
  const paper = await readLease();
  return withEngine(target, undefined, async ({ locks }) => {
    const lease = await locks.adopt(paper, { renew: false, ...(ttlMs !== undefined && { ttlMs }) });
    try {
      await lease.extend(ttlMs);
      const left = shown(lease.remainingMs());
      const text = written(lease, "json");
      if (json) process.stdout.write(`${text}\n`);
      else voice.detail(`"${lease.key}" is valid for ${left}`);
      return exits.done;
    } catch (error) {
      lease.orphan(); // not released at the end: it is still the script's, as far as anybody knows
      throw error;
    }
  });
}
