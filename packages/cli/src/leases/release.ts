import type { Target } from "../engine.ts";
import { exits } from "../exit.ts";
import type { Voice } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { readLease } from "./lease-file.ts";

/** Gives a lease back that was written down. */
export async function release({ target, voice }: { target: Target; voice: Voice }): Promise<number> {
  const paper = await readLease();
  return withEngine(target, undefined, async ({ locks }) => {
    const lease = await locks.adopt(paper, { renew: false });
    if (await lease.release()) {
      return exits.done;
    }
    voice.say(`the lease of "${paper.key}" had been lost`);
    return exits.lost;
  });
}
