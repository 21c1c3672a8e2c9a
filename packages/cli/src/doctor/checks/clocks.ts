import type { Redis } from "ioredis";

import { sampleClock } from "../clock.ts";
import type { Facts } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { waitUnless } from "../../run/wait-unless.ts";

/** Clocks are given this much more: the kernel slews by up to 500 ppm, and we are late ourselves. */
const allowedMs = 20;
const allowedRate = 0.01;

/**
 * Whether a server's clock was set, or runs at another speed, while we watched it. Ours is the monotonic one.
 */
export async function watchClock(
  facts: Facts,
  client: Redis,
  { forMs, signal }: { readonly forMs: number; readonly signal: AbortSignal },
): Promise<Finding[]> {
  const { clock: first, node } = facts;
  if (first === null || forMs === 0) {
    return [];
  }
  await waitUnless(forMs, signal);
  const second = await sampleClock(client).catch(() => null);
  if (second === null) {
    return [];
  }
  const changedMs = Math.abs(second.offsetMs - first.offsetMs);
  const unsureMs =
    first.uncertaintyMs + second.uncertaintyMs + allowedMs + allowedRate * (second.at - first.at);
  return changedMs > unsureMs
    ? [
        {
          level: "danger",
          id: "clock-step",
          node,
          observed: `its clock moved by ${Math.round(changedMs)} ms against ours within ${Math.round(second.at - first.at)} ms`,
          danger:
            "a TTL ends by that clock: a lock ends before its holder thinks so, and a second one has it",
          advice:
            "let chrony or ntpd slew the clock, without steps; a virtual machine wants its host's clock source",
        },
      ]
    : [];
}
