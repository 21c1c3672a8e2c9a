import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { manualRandom } from "holdfast/testing";

import type { NodeSetup } from "../plan/schedule.ts";
import { TracedRedis, type Record } from "./traced-redis.ts";
import { ClockView, wallStart, type VirtualClock } from "./virtual-clock.ts";

/** A machine with a server on it. */
export class ServerMachine {
  readonly clock: ClockView;
  readonly server: FakeRedis;
  /** A client could not reach the server for some time. */
  wasDown = false;
  /** The clock of the server was set back. */
  wasSetBack = false;

  constructor(
    world: VirtualClock,
    index: number,
    { offsetMs, rate, durable }: NodeSetup,
    seed: number,
    record?: Record,
  ) {
    this.clock = new ClockView(world, { rate, wall: wallStart + offsetMs });
    const random = manualRandom(seed);
    const options = { clock: this.clock, random, name: `n${index}`, durable, upForMs: 3_600_000 };
    this.server = record ? new TracedRedis(options, index, record) : new FakeRedis(options);
  }
}
