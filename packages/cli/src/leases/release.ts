import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { readLease } from "./lease-file.ts";

/** Releases a printed lease. */
export async function release({ target, voice: output }: { target: Target; voice: Output }): Promise<number> {
  const file = await readLease();
  return withEngine(target, undefined, async ({ locks }) => {
    const lease = await locks.adopt(file, { renew: false });
    if (await lease.release()) {
      return exitCodes.done;
    }
    output.info(`the lease of "${file.key}" had been lost`);
    return exitCodes.lost;
  });
}
