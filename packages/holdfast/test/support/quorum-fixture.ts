import { FakeRedis, type FakeRedisOptions } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks } from "holdfast";
import { redlock, type Connection, type RedlockOptions } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";

import type { Clock } from "../../src/runtime/clock.ts";

/** A locking process, with fault injectors between it and each node. */
export interface QuorumClient {
  readonly locks: Locks;
  readonly faults: readonly FaultInjector[];
}

/** Simulated nodes and processes, with one clock that advances by single milliseconds. */
export class QuorumFixture {
  readonly clock: ManualClock = manualClock();
  readonly servers: readonly FakeRedis[];
  #clients = 0;

  constructor(
    nodeCount = 3,
    each: (fixture: QuorumFixture, index: number) => Partial<FakeRedisOptions> = () => ({}),
  ) {
    this.servers = Array.from(
      { length: nodeCount },
      (_, index) =>
        new FakeRedis({
          clock: this.clock,
          random: manualRandom(index),
          name: `n${index}`,
          upForMs: 3_600_000,
          ...each(this, index),
        }),
    );
  }

  /** A view of the clock whose wall clock is `ms` ahead. */
  stepClock(ms: () => number): Clock {
    const { clock } = this;
    return {
      now: () => clock.now(),
      wall: () => clock.wall() + ms(),
      setTimer: (action, delayMs) => clock.setTimer(action, delayMs),
      clearTimer: (timer) => {
        clock.clearTimer(timer);
      },
    };
  }

  /** After it, all processes are connected and subscribed. @param between alters the connection to each node */
  async client(
    options: RedlockOptions = {},
    between: (connection: Connection) => Connection = (connection) => connection,
  ): Promise<QuorumClient> {
    this.#clients += 1;
    const links = this.servers.map((server) => faulty(server.connect(), { clock: this.clock }));
    const connections = links.map(({ connection }) => between(connection));
    const random = manualRandom(100 + this.#clients);
    const locks = createLocks(redlock(connections, { clock: this.clock, random, ...options }));
    const warm = await this.settleWithin(100, locks.acquire("warm"));
    await this.settleWithin(100, warm.release());
    return { locks, faults: links.map(({ controls }) => controls) };
  }

  /** Deletes the data of a lock on a node, as an eviction does. */
  forget(index: number, key = "k"): void {
    this.servers[index]?.del(`lock:${key}`);
    this.servers[index]?.del(`holdfast:fence:{lock:${key}}`);
  }

  async settleWithin<T>(ms: number, promise: Promise<T>): Promise<T> {
    const settled = promise.then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error as Error;
      },
    );
    let isLate = true;
    void settled.then(() => (isLate = false));
    await this.advance(ms);
    if (isLate) {
      throw new Error(`not settled within ${ms} ms`);
    }
    return (await settled)();
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }
}
