import type { FakeRedis, FakeRedisOptions } from "@holdfast/test-kit/fake-redis";
import type { Connection, RedlockOptions } from "holdfast/redis";
import type { ManualClock } from "holdfast/testing";

import { FakeQuorum, type FakeProcess } from "./fake-quorum.ts";

export type QuorumClient = FakeProcess;

/** Simulated nodes without latency, unless a test sets one. */
export class QuorumFixture extends FakeQuorum {
  constructor(nodeCount = 3, each?: (clock: ManualClock, index: number) => Partial<FakeRedisOptions>) {
    super(nodeCount, each);
  }

  get servers(): readonly FakeRedis[] {
    return this.nodes;
  }

  /** After it, all processes are connected and subscribed. @param between alters the connection to each node */
  client(
    redlock: RedlockOptions = {},
    between?: (connection: Connection) => Connection,
  ): Promise<FakeProcess> {
    const distancesMs = this.nodes.map(() => 0);
    return this.warmUp({ redlock, distancesMs, ...(between && { between }) });
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }
}
