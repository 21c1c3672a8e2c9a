import { setTimeout as sleep } from "node:timers/promises";

import type { Redis } from "ioredis";

import { sampleClock } from "../clock.ts";
import type { ServerFacts } from "../facts.ts";
import type { Finding } from "../finding.ts";

/** The tolerance of the check, ms, because the kernel slews by up to 500 ppm, and timers are late. */
const maxOffsetMs = 20;
const maxDriftRate = 0.01;
/** The longest time of a timer, ms. */
const maxTimerMs = 2_147_483_647;

/**
 * Whether a server's clock was set, or ran at another speed, during the check. The reference is the local monotonic clock.
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
  await sleep(Math.min(forMs, maxTimerMs), undefined, { signal }).catch(() => undefined); // ends at the signal
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
          observed: `its clock moved by ${Math.round(changedMs)} ms against the local clock within ${Math.round(second.at - first.at)} ms`,
          impact:
            "TTLs use that clock, so a lock may expire before its validity ends, and get a second holder",
          fix: "let chrony or ntpd slew the clock, without steps; a virtual machine needs its host's clock source",
        },
      ]
    : [];
}
