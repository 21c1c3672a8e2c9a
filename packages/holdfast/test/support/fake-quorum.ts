import { FakeRedis, type FakeRedisOptions } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Driver, type Locks, type LocksOptions } from "holdfast";
import { redlock, type Connection, type RedlockOptions } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";

import type { Clock } from "../../src/runtime/clock.ts";
import { altered } from "./altered.ts";

/** A locking process, with fault injectors between it and each node. */
export interface FakeProcess {
  readonly locks: Locks;
  readonly driver: Driver;
  readonly faults: readonly FaultInjector[];
  /** The number of scripts that the process has sent to the nodes. */
  readonly sent: () => number;
}

export interface ProcessOptions {
  readonly redlock?: RedlockOptions;
  readonly locks?: LocksOptions;
  /** Alters the connection to each node. */
  readonly between?: (connection: Connection) => Connection;
  /** The one-way latency to each node, in ms. @defaultValue 1 */
  readonly distancesMs?: readonly number[];
}

/** Simulated nodes and processes in this process, with one clock for all. */
export class FakeQuorum {
  readonly clock: ManualClock = manualClock();
  readonly nodes: readonly FakeRedis[];
  #processes = 0;

  /** @param each the options of one node */
  constructor(
    count: number,
    each: (clock: ManualClock, index: number) => Partial<FakeRedisOptions> = () => ({}),
  ) {
    this.nodes = Array.from(
      { length: count },
      (_, index) =>
        new FakeRedis({
          clock: this.clock,
          random: manualRandom(900 + index),
          name: `n${index}`,
          upForMs: 3_600_000,
          ...each(this.clock, index),
        }),
    );
  }

  process(options: ProcessOptions = {}): FakeProcess {
    const { clock } = this;
    let sent = 0;
    const links = this.nodes.map((node, index) => {
      const { connection, controls } = faulty(node.connect(), { clock });
      const ms = options.distancesMs?.[index] ?? 1;
      controls.delay({ requestMs: ms, replyMs: ms });
      const counting = altered(connection, {
        run: (...call) => {
          sent += 1;
          return connection.run(...call);
        },
      });
      return { connection: options.between?.(counting) ?? counting, controls };
    });
    this.#processes += 1;
    const connections = links.map(({ connection }) => connection);
    const random = manualRandom(this.#processes);
    const driver = redlock(connections, { clock, random, nodeTimeoutMs: 50, ...options.redlock });
    const faults = links.map(({ controls }) => controls);
    return { locks: createLocks(driver, options.locks), driver, faults, sent: () => sent };
  }

  /** A process that has connected to all nodes and verified its subscriptions. */
  async warmUp(options?: ProcessOptions): Promise<FakeProcess> {
    const process = this.process(options);
    const lease = await this.settleWithin(
      300,
      process.locks.acquire(`warm${this.#processes}`, { ttlMs: 1_000 }),
    );
    await this.settleWithin(100, lease.release());
    return process;
  }

  /** Advances the clock by `ms`, and expects the reply in that time. */
  async settleWithin<T>(ms: number, answer: Promise<T>): Promise<T> {
    answer.catch(() => undefined); // the rejection is handled below
    await this.clock.advance(ms);
    return Promise.race([answer, Promise.reject(new Error(`Expected an answer within ${ms} ms`))]);
  }

  /** Deletes the data of a lock on a node, as an eviction does. */
  loseData(index: number, key = "k"): void {
    this.nodes[index]?.del(`lock:${key}`);
    this.nodes[index]?.del(`holdfast:fence:{lock:${key}}`);
  }

  /** The holder of the lock on each node. */
  holders(key: string): (string | null)[] {
    return this.nodes.map((node) => node.get(`lock:${key}`));
  }

  /** The number of waiters for the lock on each node. */
  waiting(key: string): number[] {
    return this.nodes.map((node) => {
      const queue = node.dump(`holdfast:queue:{lock:${key}}`);
      return queue === undefined ? 0 : (queue.value as readonly unknown[]).length;
    });
  }
}

/** The state of a promise that is not awaited. */
export interface TrackedPromise<T> {
  /** The result. Undefined while pending, and after a rejection. */
  value: T | undefined;
  error: unknown;
  isSettled: boolean;
}

export function track<T>(promise: Promise<T>): TrackedPromise<T> {
  const followed: TrackedPromise<T> = { value: undefined, error: undefined, isSettled: false };
  promise.then(
    (value) => Object.assign(followed, { value, isSettled: true }),
    (error: unknown) => Object.assign(followed, { error, isSettled: true }),
  );
  return followed;
}

/** A clock that runs like the given one, with its wall time `ms` ahead. */
export function steppedClock(clock: ManualClock, ms: () => number): Clock {
  return altered<Clock>(clock, { wall: () => clock.wall() + ms() });
}

/** The error of a server that is down. */
export function refusedError(): Error {
  return new Error("connect ECONNREFUSED");
}
