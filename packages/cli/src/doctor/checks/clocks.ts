import type { Redis } from "ioredis";

import { sampleClock } from "../clock.ts";
import type { ServerFacts } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { waitUnless } from "../../run/wait-unless.ts";

/** Clocks are given this much more: the kernel slews by up to 500 ppm, and we are late ourselves. */
const maxOffsetMs = 20;
const maxDriftRate = 0.01;

/**
 * Whether a server's clock was set, or runs at another speed, while we watched it. Ours is the monotonic one.
 */
export async function watchClock(
  facts: ServerFacts,
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
  const uncertaintyMs =
    first.uncertaintyMs + second.uncertaintyMs + maxOffsetMs + maxDriftRate * (second.at - first.at);
  return changedMs > uncertaintyMs
    ? [
        {
          level: "critical",
          id: "clock-step",
          node,
          observed: `its clock moved by ${Math.round(changedMs)} ms against ours within ${Math.round(second.at - first.at)} ms`,
          impact:
            "a TTL ends by that clock: a lock ends before its holder thinks so, and a second one has it",
          fix: "let chrony or ntpd slew the clock, without steps; a virtual machine wants its host's clock source",
        },
      ]
    : [];
}
