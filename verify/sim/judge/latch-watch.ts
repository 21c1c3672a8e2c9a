import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Clock } from "holdfast";

import type { Client } from "../run/client.ts";
import { commandTimeoutMs } from "../run/engines.ts";
import type { History } from "./history.ts";
import type { WatchedLatch } from "../run/latch-callers.ts";
import { LatchHistory } from "./latch-history.ts";
import { slowestClockFactor } from "./patience.ts";
import { keysIn } from "../run/quiet-period.ts";
import { isFaultFree, type Schedule } from "../plan/schedule.ts";
import type { ServerMachine } from "../run/server-machine.ts";

/** The largest error of a process about a server's time: the longest delay of a message, ms. */
const maxTimeErrorMs = 1_600;
const faultFreeTimeErrorMs = 50;

/** Creates the judge of each latch of a schedule, by key. */
export function watchLatches(
  schedule: Schedule,
  history: History,
  [machine]: readonly ServerMachine[],
  [client]: readonly Client[],
): ReadonlyMap<string, WatchedLatch> {
  const { kind, steps, scenario } = schedule;
  const aheadMs = isFaultFree(schedule) ? faultFreeTimeErrorMs : maxTimeErrorMs;
  // If a server's clock was set, the judge cannot know which requests arrive after their deadline.
  const isClockSteady = !steps.some((step) => step.kind === "step node");
  const bounds = {
    latestMs: isClockSteady ? commandTimeoutMs * slowestClockFactor + aheadMs : Infinity,
    isDurable: isClockSteady && !steps.some((step) => step.kind === "restart node" && !step.keepData),
    dequeuesOnTimeout: scenario === "calm",
    openBound: () => history.freeBound,
  };
  const watched = (kind === "latch" ? keysIn(steps) : []).map((key): [string, WatchedLatch] => {
    const memory = machine ? undefined : new MemoryLatchObserver((client as Client).process.clock);
    const observer = machine
      ? observeServer(machine.server, machine.clock, key)
      : (memory as MemoryLatchObserver);
    return [key, { memory, history: new LatchHistory(history.findings, key, observer, bounds) }];
  });
  return new Map(watched);
}

/** The state of a latch in an engine. */
export interface LatchSnapshot {
  /** Distinguishes the latch from all other latches of its key. */
  readonly id: string;
  readonly total: number;
  readonly remaining: number;
  /** When the latch expires, by the engine's clock. */
  readonly endsAt: number;
}

/** Reads the latch that an engine stores under a key. */
export interface LatchObserver {
  /** The engine's clock, ms. */
  now(): number;
  read(): LatchSnapshot | undefined;
  /** How many waiters have a queue entry. */
  waiters?(): number;
}

/** Reads the data of one server, without a request. */
function observeServer(server: FakeRedis, clock: Clock, key: string): LatchObserver {
  return {
    now: () => Math.floor(clock.wall()),
    waiters: () => {
      const queue = server.dump(`holdfast:queue:{lock:${key}}`);
      return queue?.type === "zset" ? queue.value.length : 0;
    },
    read: () => {
      const stored = server.dump(`lock:${key}`);
      const fields = new Map(stored?.type === "hash" ? stored.value : []);
      const [id, total, remaining, ends] = ["born", "latch", "left", "ends"].map((name) => fields.get(name));
      return id === undefined
        ? undefined
        : { id, total: Number(total), remaining: Number(remaining), endsAt: Number(ends) };
    },
  };
}

/** The `Latch` object of a caller. It belongs to the latch of its first call. */
export interface Caller {
  readonly count: number;
  readonly ttlMs: number;
}

/** The state that a memory engine must have. Memory applies each call at once, so the calls determine the state. */
export class MemoryLatchObserver implements LatchObserver {
  readonly #clock: Clock;
  readonly #latchOf = new WeakMap<Caller, string>();
  readonly #attempts = new Set<string>();
  #current: LatchSnapshot | undefined;
  #createdCount = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  read(): LatchSnapshot | undefined {
    if (this.#current && this.#current.endsAt <= this.now()) {
      this.#current = undefined;
    }
    return this.#current;
  }

  /** @param attempt the attempt that counts down; undefined: the call only waits */
  call(caller: Caller, attempt: string | undefined): void {
    const known = this.#latchOf.get(caller);
    if (known !== undefined && known !== this.read()?.id) {
      return;
    }
    const present = this.read() ?? this.#create(caller);
    this.#latchOf.set(caller, present.id);
    if (attempt !== undefined) {
      this.#attempts.add(attempt);
    }
    this.#current = { ...present, remaining: Math.max(0, present.total - this.#attempts.size) };
  }

  #create({ count, ttlMs }: Caller): LatchSnapshot {
    this.#attempts.clear();
    this.#createdCount += 1;
    return { id: String(this.#createdCount), total: count, remaining: count, endsAt: this.now() + ttlMs };
  }
}
