import { SeededRandom } from "./dice.ts";
import type { ScheduleFrame, Step } from "./schedule.ts";

/** A generator of its own, as for sleeps. */
export function transferRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 6 * 2 ** 28);
}

/** The probability that a process hands on its lease and pauses, in a storm of mutexes. */
const transferProbability = 0.25;
/** No other step requests this key, so only the faults of the storm disturb the plan. */
const key = "handed on";

/**
 * Plans a process that hands on its lease, and then pauses for longer than twice the time for which it may remember the grant. The
 * replies to the process are slow, so the reply to a poll is still under way when the grant arrives by notification. The process reads
 * that reply after the pause, while another process holds the lease and a third waits. Without the plan no process reads a reply about a
 * grant that it has handed on several TTLs before.
 */
export function planTransfers(frame: ScheduleFrame, random: SeededRandom): Step[] {
  const { scenario, engine, kind, nodes, quietAt, maxTtlMs } = frame;
  const isPlanned = scenario === "storm" && kind === "mutex" && engine !== "memory";
  if (!isPlanned || !random.happens(transferProbability)) {
    return [];
  }
  const [giver, ...others] = drawClients(frame, random);
  const ttlMs = random.integer(100, Math.min(maxTtlMs, 400));
  const at = random.between(200, quietAt / 3);
  const holdMs = ttlMs * random.between(1.5, 4);
  const pauseMs = (engine === "quorum" ? maxTtlMs : ttlMs) * random.between(2.1, 3);
  if (giver === undefined || others.length === 0 || at + holdMs + pauseMs > quietAt) {
    return [];
  }
  const [recipient, rival] = [random.pick(others), random.pick(others)];
  const request = { kind: "acquire", key, ttlMs, waitMs: null, renew: true } as const;
  const ending = { transferTo: recipient, holdMs: pauseMs + 500, pausesForMs: pauseMs };
  return [
    { ...request, at, client: rival, holdMs },
    { ...request, at: at + 20, client: giver, holdMs: 0, ending },
    ...nodes.map((_, node): Step => ({
      at: at + 60,
      kind: "slow",
      client: giver,
      node,
      forMs: holdMs + 100,
      delaysMs: [0.2, random.between(200, 380), 0.2],
    })),
    { ...request, at: at + holdMs + 100, client: rival, holdMs: 0 },
  ];
}

/** One client, and all clients of other processes. */
function drawClients({ clients }: ScheduleFrame, random: SeededRandom): number[] {
  const giver = random.integer(0, clients.length - 1);
  const others = clients.flatMap(({ process }, index) =>
    process === clients[giver]?.process ? [] : [index],
  );
  return [giver, ...others];
}
