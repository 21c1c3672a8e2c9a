import { setTimeout as sleep } from "node:timers/promises";

import type { Redis } from "ioredis";

import { sampleClock } from "../clock.ts";
import { formatDuration } from "../duration.ts";
import type { Deployment, ServerFacts } from "../facts.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";

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

/**
 * Compares the clock of a primary with those of its replicas. The end of a grant is a time of the primary's clock, so a promoted replica
 * whose clock is ahead ends each lease early.
 * @param open connects to a replica
 */
export async function compareReplicas(
  facts: ServerFacts,
  { ttlMs, driftFactor }: Deployment,
  open: (endpoint: { host: string; port: number }) => Server,
): Promise<Finding[]> {
  const { clock, info, node } = facts;
  const endpoints = [...info].flatMap(([name, value]) => {
    const [, host, port] = (/^slave\d+$/.test(name) && /ip=([^,]+),port=(\d+)/.exec(value)) || [];
    return host === undefined ? [] : [{ host, port: Number(port) }];
  });
  const findings = endpoints.map(async (endpoint): Promise<Finding[]> => {
    const replica = open(endpoint);
    const sample = await sampleClock(replica.client).catch(() => null);
    if (clock === null || sample === null) {
      return [];
    }
    const aheadMs = sample.offsetMs - clock.offsetMs;
    const uncertaintyMs = sample.uncertaintyMs + clock.uncertaintyMs + maxDriftRate * (sample.at - clock.at);
    return aheadMs - uncertaintyMs > ttlMs * driftFactor
      ? [
          {
            level: "risk",
            id: "replica-clock-ahead",
            node: replica.name,
            observed: `its clock is ${formatDuration(aheadMs)} ahead of that of ${node}`,
            impact:
              "after its promotion each lease ends early by that time, and the lock may have a second holder",
            fix: "let chrony or ntpd synchronize the clocks of the primary and its replicas",
          },
        ]
      : [];
  });
  return (await Promise.all(findings)).flat();
}
