import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { acquire as acquireLease, type AcquireSpec } from "../run/acquire.ts";
import { heldMessage } from "../run/held.ts";
import type { Output } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { formatLease, type LeaseFormat } from "./lease-file.ts";

export interface AcquireOptions extends AcquireSpec {
  readonly target: Target;
  readonly heldExit: number;
  readonly format: LeaseFormat;
  readonly voice: Output;
}

/** Acquires a lock and prints the lease. The lease ends with its TTL, unless `renew` or `release` is called before. */
export function acquire(options: AcquireOptions): Promise<number> {
  const { voice: output, format } = options;
  return withEngine(options.target, options.owner, async (engine, interrupted) => {
    const lease = await acquireLease(engine, { ...options, renew: false }, { voice: output, interrupted });
    if (lease === null) {
      output.info(await heldMessage(engine.locks, options));
      return options.heldExit;
    }
    process.stdout.write(`${formatLease(lease, format)}\n`);
    return exitCodes.done;
  });
}
