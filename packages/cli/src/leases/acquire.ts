import type { Target } from "../engine.ts";
import { exits } from "../exit.ts";
import { acquire as acquireLease, type Wanted } from "../run/acquire.ts";
import type { Voice } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { written, type Form } from "./lease-file.ts";

export interface AcquireOptions extends Wanted {
  readonly target: Target;
  readonly heldExit: number;
  readonly form: Form;
  readonly voice: Voice;
}

/** Takes a lock and writes the lease down. Nobody renews it: it ends with its TTL, if it is not renewed or released before. */
export function acquire(options: AcquireOptions): Promise<number> {
  const { voice, keys, form } = options;
  return withEngine(options.target, options.owner, async (engine, interrupted) => {
    const lease = await acquireLease(engine, { ...options, renew: false }, { voice, interrupted });
    if (lease === null) {
      voice.say(`"${keys[0]}" is held; see holdfast inspect ${keys[0]}`);
      return options.heldExit;
    }
    process.stdout.write(`${written(lease, form)}\n`);
    return exits.done;
  });
}
