import { beforeEach } from "vitest";

import { History } from "../../sim/judge/history.ts";
import { type WatchedLease, attemptKey, type SharedGroup } from "../../sim/judge/leases.ts";
import type { WaitingRequest } from "../../sim/judge/waiting-request.ts";
import type { Schedule, Step, Use } from "../../sim/plan/schedule.ts";

/** The true time, and the state of every process, of the world in a test. */
export const world: { now: number; isRunning: boolean; hadFault: boolean } = {
  now: 0,
  isRunning: true,
  hadFault: false,
};

/** Begins each test of the calling file with a fresh world. */
export function onFreshWorld(): void {
  beforeEach(() => {
    Object.assign(world, { now: 0, isRunning: true, hadFault: false });
  });
}

/** @param offsetsMs the offsets of the nodes' clocks; none: one server */
export function history(
  scenario: Schedule["scenario"] = "calm",
  steps: readonly Step[] = [],
  offsetsMs: readonly number[] = [],
): History {
  const nodes = offsetsMs.map((offsetMs) => ({ offsetMs, rate: 1 }));
  const engine = nodes.length > 0 ? "quorum" : "server";
  const clients = [1, 1, 1, 1.01].map((rate) => ({ rate }));
  const schedule = { scenario, steps, engine, nodes, clients, kind: "mutex" } as unknown as Schedule;
  return new History(
    () => world.now,
    schedule,
    () => ({ isRunning: world.isRunning, hadFault: world.hadFault }),
  );
}

export const use: Use = {
  kind: "acquire",
  client: 0,
  key: "k",
  ttlMs: 1_000,
  waitMs: null,
  renew: false,
  holdMs: 0,
};

/** A lease on "k" that a test ends. */
export class FakeLease implements WatchedLease {
  readonly key = "k";
  readonly fencingToken: bigint;
  leaseMs: number = 1_000;
  readonly #controller = new AbortController();

  constructor(fencingToken: number) {
    this.fencingToken = BigInt(fencingToken);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  remainingMs(): number {
    return this.leaseMs;
  }

  end({ isReported }: { isReported: boolean }): void {
    this.leaseMs = 0;
    if (isReported) {
      this.#controller.abort();
    }
  }
}

export function checkNames({ findings }: History): string[] {
  return findings.list.map(({ check }) => check);
}

/** The names of the failed checks, one ms later. */
export function namesOneMsLater(watched: History): string[] {
  world.now += 1;
  watched.check();
  return checkNames(watched);
}

/** A request of a caller that has its own queue entry since then. */
export function requestSince(since: number, request: Partial<WaitingRequest> = {}): WaitingRequest {
  return {
    client: 0,
    keys: ["k"],
    weight: 2 ** 31,
    isShared: false,
    ttlMs: 1_000,
    since,
    arrivedFrom: since,
    arrivedTo: since,
    judgedSince: since,
    serial: 0,
    isInLocalQueue: false,
    usesLocalQueue: false,
    mayWaitInMemory: false,
    headSince: Infinity,
    sentSince: -Infinity,
    isQueued: true,
    isDequeued: false,
    until: Infinity,
    wasGranted: false,
    hadPause: false,
    isSettled: false,
    ...request,
  };
}

/** Requests the lock, and gets the lease at once. */
export function grant(to: History, client: number, lease: WatchedLease, attemptId?: string): void {
  const request = to.requestStarted(
    { ...use, client, ...(attemptId === undefined ? {} : { attemptId }) },
    false,
  );
  const sharing: SharedGroup | undefined =
    attemptId === undefined ? undefined : { name: attemptKey(client, attemptId) };
  to.granted(request, lease, sharing);
  to.requestSettled(request);
}
