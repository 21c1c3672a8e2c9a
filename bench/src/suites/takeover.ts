import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { leaseEnd } from "../measure/lease-end.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";
import {
  latenessOf,
  spreadTimes,
  takeoverAt,
  type TakeoverTimes,
  type Takeover,
} from "../measure/takeovers.ts";
import { WorkerProcess } from "../run/worker-process.ts";
import { targetOf } from "../run/workers.ts";

const metrics: readonly Metric[] = [
  { id: "late", label: "late by p50 ms", digits: 0 },
  { id: "lateMax", label: "late by max ms", digits: 0 },
  // Lateness has no ratio, because it is negative or close to zero.
  { id: "afterKill", label: "kill to grant p50 ms", digits: 0, best: "least" },
  { id: "afterLease", label: "lease end to grant p50 ms", digits: 1, best: "least" },
  { id: "afterLeaseMax", label: "lease end to grant max ms", digits: 1 },
];

export interface TakeoverSize {
  readonly ttlMs: number;
  readonly repetitions: number;
}

interface Repetition {
  readonly settings: string;
  readonly takeover: Takeover;
}

/** How long a lock stays held after its holder's process is killed, while another process waits. */
export function takeover(
  contestants: readonly ContestantName[],
  { ttlMs, repetitions }: TakeoverSize,
  rounds: number,
): Suite {
  // The earliest kill is at 0.9 of the TTL. By then every library has renewed, because the latest peers renew at 0.8.
  const headStartMs = ttlMs * 0.75;
  const [fromMs, toMs] = [ttlMs * 0.15, ttlMs * 0.75];
  const label = `TTL ${ttlMs / 1000} s, with renewal`;

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    // The repetitions run at the same time, each with its own lock and two processes, because these sleep nearly all the time.
    const settled = await Promise.allSettled(
      spreadTimes(repetitions, [fromMs, toMs], Math.random).map((killAfterMs, index) =>
        repeat(contestant, site, `takeover:${index}`, killAfterMs),
      ),
    );
    yield figuresOf(settled.map(fulfilled));
  }

  async function repeat(
    contestant: ContestantName,
    site: Site,
    key: string,
    killAfterMs: number,
  ): Promise<Repetition> {
    const [{ admin }] = site.servers;
    const target = targetOf(site);
    await using holder = await WorkerProcess.open(contestant, target, null);
    await holder.start({ kind: "hold", keys: [key], ttlMs });
    const headStart = sleep(headStartMs);
    await using waiter = await WorkerProcess.open(contestant, target, null);
    await headStart;
    await waiter.start({ kind: "wait", key, ttlMs });
    const killing = sleep(killAfterMs).then(() => kill(holder, admin, key));
    const [grantedAt, killed] = await Promise.all([endOfWait(waiter), killing]);
    const { firstFailure } = await waiter.end();
    return { settings: waiter.settings, takeover: takeoverOf({ ...killed, grantedAt }, firstFailure) };
  }

  function figuresOf(done: readonly Repetition[]): Figures {
    const takeovers = done.map((repetition) => repetition.takeover);
    const reasons = takeovers.flatMap((one) => (one.outcome === "taken" ? [] : [one.reason]));
    return {
      case: label,
      settings: done[0]?.settings ?? "",
      values: latenessOf(takeovers, ttlMs),
      failures: reasons.length,
      firstFailure: reasons[0] ?? null,
    };
  }

  return {
    name: "takeover",
    title: "Takeover from a killed holder",
    method: `${repetitions} holders a round, each in a process that is killed ${fromMs / 1000} to ${toMs / 1000} s after the waiter's call.`,
    contestants,
    absent: [
      { contestants: ["raw"], reason: "its takeover time is only that of its poll" },
      { contestants: ["@verrou/core"], reason: "has no renewal of its own" },
    ],
    reference: null,
    topology: "server",
    rounds,
    cases: [label],
    metrics,
    panels: [
      { form: "bars", metric: "afterKill" },
      {
        form: "spans",
        scale: "log",
        label: "lease end to grant p50 to max ms",
        metrics: ["afterLease", "afterLeaseMax"],
      },
    ],
    measure,
  };
}

/** The end of the wait on the parent's clock, like the time of the kill. The waiter's message adds a fraction of a millisecond. */
async function endOfWait(waiter: WorkerProcess): Promise<number> {
  await waiter.stop();
  return performance.now();
}

async function kill(
  holder: WorkerProcess,
  admin: Redis,
  key: string,
): Promise<Omit<TakeoverTimes, "grantedAt">> {
  const killedAt = performance.now();
  // The disposal of a worker sends SIGKILL. Only after its end is it certain that the worker sends no further renewal.
  await holder[Symbol.asyncDispose]();
  return { killedAt, leaseEndsAt: await leaseEnd(admin, key) };
}

function takeoverOf(moments: TakeoverTimes, failure: string | null): Takeover {
  return failure === null ? takeoverAt(moments) : { outcome: "failed", reason: failure };
}

function fulfilled<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}
